"""The alerts of a server: their configs, the metrics that they may read, and those that every server has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import AliasChoices, Field, model_validator

from rl4sys.alerts import AlertCondition
from rl4sys.alerts.alert_watch import require_complete
from rl4sys.config import Config
from rl4sys.suggestions import did_you_mean

LEARNED = "train/"
"""The prefix of the last metrics of a learner's algorithm, which depend on the algorithm."""
SERVER_METRICS: Mapping[str, str] = {
    "server/storing": "1 while experience can be stored, else 0",
    "server/disk_free_bytes": "free space on the disk of the data directory",
    "server/warnings": "warnings in the status",
    "server/learners": "learners",
    "server/connected_clients": "clients that called within the last minute",
    "server/failed_calls": "calls that did not end in OK, since the start",
    "server/uptime_seconds": "seconds since the start",
}
LEARNER_METRICS: Mapping[str, str] = {
    "learner/failed": "1 if it is FAILED, else 0",
    "learner/held": "1 if it is HELD, else 0",
    "learner/paused": "1 if it is paused, else 0",
    "learner/frozen": "1 if it ignores experience by order, else 0",
    "learner/restarts": "starts of its worker after a failure",
    "learner/version": "its newest version",
    "learner/queued_segments": "segments stored and not yet learned from",
    "learner/queued_bytes": "the same in bytes",
    "learner/queue_share": "the larger of both, as shares of `inbox_segments` and `inbox_bytes`; at 1 pushes wait",
    "learner/stored_steps": "steps stored",
    "learner/learned_steps": "steps that were learned from",
    "learner/unused_steps": "steps that were not, for any reason",
    "learner/too_old_steps": "steps that were not, because they came from a version that was too old",
    "learner/episodes": "episodes that ended",
    "learner/updates": "updates of the weights",
    "learner/mean_return": "the mean return of the last episodes",
    "learner/checkpoint_age_seconds": "the age of its newest checkpoint",
    "learner/log_bytes": "the size of its log",
    "learner/other_lineage_clients": "clients that keep a policy of another lineage",
    "clients/connected": "its clients that called within the last minute",
    "clients/silent": "its clients that called since the start of the server, but not within the last minute",
    "clients/not_reporting": "its connected clients without a report within the last minute",
    "clients/not_deciding": "its connected clients whose policy does not decide, for any reason",
    "clients/lowest_version": "the lowest version that a connected client acts with",
    "clients/backlog_bytes": "bytes that connected clients have recorded and not delivered",
    "clients/decisions": "decisions of its clients, those of the fallback included",
    "clients/fallback_decisions": "decisions of their fallbacks",
    "clients/bad_inputs": "observations or results that could not be used",
    "clients/late_rewards": "rewards that came too late",
    "clients/drops": "dropped segments and decisions, for any reason",
    "clients/refused_segments": "segments that the server refused permanently",
    "clients/delayed_pushes": "pushes that the server refused for the moment",
}
"""Of each learner and its clients. What counts up does so since the start of the server."""


class ServerAlertConfig(Config):
    """A condition over the metrics of a server or of each of its learners, and what to do when it holds."""

    when: str = Field(min_length=1)
    """The condition, as in the alerts of a run: metrics, numbers, arithmetic, comparisons, `and`, `or`, `not`, and the
    functions `not_finite`, `abs`, `mean`, `median`, `lowest`, `highest`, `increase`, `stalled`."""
    name: str | None = Field(None, min_length=1, max_length=100)
    """Its name in the status, the log, metrics and messages; the condition itself if not given. A name of a built-in
    alert replaces that."""
    learners: tuple[str, ...] = ("*",)
    """Patterns of the names of learners that it is about, such as `shared~fleet`; only for metrics of learners."""
    over: float = Field(600.0, gt=0)
    """Seconds that `mean`, `median`, `lowest`, `highest`, `increase` and `stalled` look back on."""
    lasting: float = Field(0.0, ge=0, validation_alias=AliasChoices("for", "lasting"))
    """Seconds (`lasting` is the same key) for which the condition must hold without a break."""
    quiet: float = Field(3_600.0, gt=0)
    """Seconds before the same alert is logged or sent again."""
    do: tuple[Literal["log", "notify"], ...] = ("log",)
    """What is done besides showing it in the status and in metrics: `log` (a line in the log of the server),
    `notify` (a message)."""
    notify: tuple[str, ...] = ()
    """Where messages go, as addresses of apprise (extra `rl4sys[alerts]`): `mailto://…`, `json://host/path`, …;
    `env:NAME` takes the address from the environment, so that no secret is written into the config."""
    advice: str = Field("", max_length=300)
    """What to do about it, shown with it."""

    @model_validator(mode="after")
    def _check(self) -> ServerAlertConfig:
        _require_known(AlertCondition(self.when))
        require_complete(self.do, self.notify)
        return self

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.name or self.when


def _require_known(condition: AlertCondition) -> None:
    known = SERVER_METRICS.keys() | LEARNER_METRICS.keys()
    for name in sorted(condition.metrics - known):
        if not name.startswith(LEARNED):
            hint = did_you_mean(name, known) or f"; there are: {', '.join(sorted(known))}, and {LEARNED}…"
            raise ValueError(f"'{condition.text}': a server has no metric {name}{hint}")


DEFAULT_ALERTS = (
    ServerAlertConfig(
        name="learner overloaded",
        when="learner/queue_share > 0.8",
        lasting=300.0,
        advice="It learns more slowly than experience arrives. Give it more processor time, or make clients send less.",
    ),
    ServerAlertConfig(
        name="experience too old",
        when="increase(learner/too_old_steps) > 0.5 * increase(learner/stored_steps)",
        lasting=600.0,
        advice="Most of what clients send is not learned from. Raise max_age, or let fewer clients explore.",
    ),
    ServerAlertConfig(
        name="worker keeps failing",
        when="increase(learner/restarts) >= 3",
        over=1_800.0,
        advice="The cause is in: rl4sys learners show NAME",
    ),
    ServerAlertConfig(
        name="clients drop experience",
        when="increase(clients/drops) > 0",
        advice="The reasons are in: rl4sys status",
    ),
    ServerAlertConfig(
        name="segments refused",
        when="increase(clients/refused_segments) > 0",
        advice="The reasons are in: rl4sys status --json",
    ),
    ServerAlertConfig(
        name="bad inputs",
        when="increase(clients/bad_inputs) > 0.01 * increase(clients/decisions)",
        lasting=60.0,
        advice="Observations or results are missing or not finite, so policies do not decide. See the log of a client.",
    ),
)
"""Trends that `rl4sys status` alone cannot see: it reports what is wrong at the moment by itself."""


def with_defaults(own: Iterable[ServerAlertConfig]) -> tuple[ServerAlertConfig, ...]:
    """A server's own alerts after the built-in ones that they do not replace."""
    own = tuple(own)
    replaced = {alert.name for alert in own}
    return (*(alert for alert in DEFAULT_ALERTS if alert.name not in replaced), *own)


def require_distinct(alerts: Iterable[ServerAlertConfig]) -> None:
    """Raise `ValueError` if two alerts have the same name: metrics could not tell them apart."""
    repeated = [title for title, count in Counter(alert.title for alert in alerts).items() if count > 1]
    if repeated:
        raise ValueError(f"there are several alerts '{repeated[0]}'; give each a name of its own")
