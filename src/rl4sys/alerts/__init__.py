"""Alerts over named numbers, for runs of the laboratory and for servers alike."""

from rl4sys.alerts.alert_watch import AlertWatch
from rl4sys.alerts.conditions import AlertCondition, BadCondition, MetricHistory
from rl4sys.alerts.notifications import Notifications, NotificationsUnavailable, require_notifications

__all__ = [
    "AlertCondition",
    "AlertWatch",
    "BadCondition",
    "MetricHistory",
    "Notifications",
    "NotificationsUnavailable",
    "require_notifications",
]
