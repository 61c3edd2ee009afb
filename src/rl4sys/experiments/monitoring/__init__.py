"""Monitors a run: alerts with their actions, and rollbacks when learning diverges."""

from rl4sys.experiments.monitoring.alerts import AlertDecision, Alerts
from rl4sys.experiments.monitoring.events import Events
from rl4sys.experiments.monitoring.machine_metrics import MachineMetrics
from rl4sys.experiments.monitoring.recovery import Recovery

__all__ = [
    "AlertDecision",
    "Alerts",
    "Events",
    "MachineMetrics",
    "Recovery",
]
