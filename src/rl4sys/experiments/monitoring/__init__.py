"""Watches over a run: alerts, what they do, and the way back when learning breaks."""

from rl4sys.experiments.monitoring.alerts import Alerts, Verdict
from rl4sys.experiments.monitoring.events import Events
from rl4sys.experiments.monitoring.machine_metrics import MachineMetrics
from rl4sys.experiments.monitoring.notifications import MessagesUnavailable, require_messages
from rl4sys.experiments.monitoring.recovery import Recovery

__all__ = ["Alerts", "Events", "MachineMetrics", "MessagesUnavailable", "Recovery", "Verdict", "require_messages"]
