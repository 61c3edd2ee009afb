"""What of changed settings a running server takes over, and what needs a restart."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

from rl4sys.server.options import ServiceLimits, ServiceOptions
from rl4sys.server.service.server_alerts import require_sound_alerts

LIVE_LIMITS = frozenset(
    {
        *("inbox_bytes", "inbox_segments", "client_bytes", "max_epochs"),
        *("max_learners", "max_learners_per_token", "max_sessions", "max_sessions_per_token"),
        *("max_watchers_per_token", "max_act_rows", "parameters_bytes", "unclaimed_seconds"),
        *("sleep_seconds", "expire_seconds"),
        *("join_seconds", "commit_seconds", "retry_ms", "client_rates", "token_rates", "report_seconds"),
        "max_reports_per_second",
    }
)
"""Limits that take effect at once. Clients have received the others, or they are built into the server."""
_LIVE = frozenset({"limits", "offers", "service", "alerts"})


class Reloaded(NamedTuple):
    """What became of changed settings."""

    applied: list[str]
    needs_restart: list[str]


def reloaded_limits(old: ServiceLimits, new: ServiceLimits) -> tuple[ServiceLimits, Reloaded]:
    """The limits to use from now on, and what changed."""
    changed = [name for name in ServiceLimits.model_fields if getattr(old, name) != getattr(new, name)]
    live = {name: getattr(new, name) for name in changed if name in LIVE_LIMITS}
    needs_restart = [f"limits.{name}" for name in changed if name not in LIVE_LIMITS]
    return old.model_copy(update=live), Reloaded([f"limits.{name}" for name in live], needs_restart)


def fixed_changes(old: Any, new: Any) -> list[str]:
    """The fields of two options that differ and need a restart."""
    names = [field.name for field in fields(old) if field.name not in _LIVE]
    return [name for name in names if getattr(old, name) != getattr(new, name)]


def reloaded_options(old: ServiceOptions, new: ServiceOptions) -> tuple[ServiceOptions, Reloaded]:
    """The options to use from now on, and what changed. Raises `ConfigError` for what is not sound."""
    limits, changes = reloaded_limits(old.limits, new.limits)
    applied = list(changes.applied)
    if new.offers != old.offers:
        new.offers.require_sound(old.workers, old.plugins)
        applied.append("experiments")
    if new.alerts != old.alerts:
        require_sound_alerts(new.alerts)
        applied.append("alerts")
    options = replace(old, limits=limits, offers=new.offers, alerts=new.alerts)
    return options, Reloaded(applied, [*fixed_changes(old, new), *changes.needs_restart])
