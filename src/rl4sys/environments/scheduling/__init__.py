"""Batch scheduling: traces and generated workloads, a simulated machine, protocols, heuristics and metrics."""

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
    "Machine",
    "ProtocolName",
    "Schedule",
    "ScheduleMetrics",
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
    "schedule_by",
    "workload",
    "write_swf",
]
