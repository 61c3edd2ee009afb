"""Batch scheduling: traces and generated workloads, a simulated machine, protocols, heuristics, an environment."""

from rl4sys.environments.scheduling.environment import BatchScheduling, register_scheduling
from rl4sys.environments.scheduling.episode import SchedulingEpisode, SchedulingRules
from rl4sys.environments.scheduling.heuristics import HEURISTICS, UnknownHeuristic, heuristic
from rl4sys.environments.scheduling.lublin import generate
from rl4sys.environments.scheduling.machine import Machine
from rl4sys.environments.scheduling.protocols import PROTOCOLS, ProtocolName
from rl4sys.environments.scheduling.schedule import (
    Schedule,
    ScheduleMetrics,
    UnknownProtocol,
    mean_metrics,
    measure,
    schedule_by,
)
from rl4sys.environments.scheduling.swf import SwfTrace, TraceUnreadable, read_swf, write_swf
from rl4sys.environments.scheduling.workload import Workload, WorkloadTooShort, workload

__all__ = [
    "HEURISTICS",
    "PROTOCOLS",
    "BatchScheduling",
    "Machine",
    "ProtocolName",
    "Schedule",
    "ScheduleMetrics",
    "SchedulingEpisode",
    "SchedulingRules",
    "SwfTrace",
    "TraceUnreadable",
    "UnknownHeuristic",
    "UnknownProtocol",
    "Workload",
    "WorkloadTooShort",
    "generate",
    "heuristic",
    "mean_metrics",
    "measure",
    "read_swf",
    "register_scheduling",
    "schedule_by",
    "workload",
    "write_swf",
]
