"""A balanced service in simulation: requests, backends of unequal speed, the rules of balancers, a guard."""

from rl4sys.environments.balancing.backend_view import FEATURES, BackendView, context, rows
from rl4sys.environments.balancing.balancing_guard import BalancingGuard
from rl4sys.environments.balancing.requests import CLASSES, RATE, SPEEDS, Disturbance, Request, Speed, arrivals, speeds
from rl4sys.environments.balancing.rules import BASELINE, RULES, Rule
from rl4sys.environments.balancing.simulation import OVERHEAD, Latencies, SimulatedService, simulate

__all__ = [
    "BASELINE",
    "CLASSES",
    "FEATURES",
    "OVERHEAD",
    "RATE",
    "RULES",
    "SPEEDS",
    "BackendView",
    "BalancingGuard",
    "Disturbance",
    "Latencies",
    "Request",
    "Rule",
    "SimulatedService",
    "Speed",
    "arrivals",
    "context",
    "rows",
    "simulate",
    "speeds",
]
