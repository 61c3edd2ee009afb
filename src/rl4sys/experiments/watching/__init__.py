"""Watches over a run: alerts, what they do, and the way back when learning breaks."""

from rl4sys.experiments.watching.alerts import Alerts, Verdict
from rl4sys.experiments.watching.events import Events
from rl4sys.experiments.watching.machine_metrics import MachineMetrics
from rl4sys.experiments.watching.messages import MessagesUnavailable, require_messages
from rl4sys.experiments.watching.recovery import Recovery

__all__ = ["Alerts", "Events", "MachineMetrics", "MessagesUnavailable", "Recovery", "Verdict", "require_messages"]
