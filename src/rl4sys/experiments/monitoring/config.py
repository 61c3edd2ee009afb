"""The configs of alerts and of the limits on instability."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field, model_validator

from rl4sys.alerts import AlertCondition
from rl4sys.alerts.alert_watch import require_complete
from rl4sys.config import Config
from rl4sys.learning import MAX_SKIPPED_IN_ROW

Action = Literal["log", "terminal", "notify", "stop", "solved", "rollback"]


class AlertConfig(Config):
    """A condition over metrics, and what to do when it holds."""

    when: str = Field(min_length=1)
    """The condition: metrics, numbers, arithmetic, comparisons, `and`, `or`, `not`, and the functions `not_finite`,
    `abs`, `mean`, `median`, `lowest`, `highest`, `increase`, `stalled`."""
    name: str | None = Field(None, min_length=1, max_length=100)
    """Its name in messages; the condition itself if not given."""
    over: int = Field(50_000, ge=1)
    """Steps that `mean`, `median`, `lowest`, `highest`, `increase` and `stalled` look back on."""
    lasting: int = Field(0, ge=0, validation_alias=AliasChoices("for", "lasting"))
    """Steps (`lasting` is the same key) for which the condition must hold without a break before anything is done."""
    quiet: int = Field(50_000, ge=1)
    """Steps before the same alert does anything again."""
    do: tuple[Action, ...] = Field(("log", "terminal"), min_length=1)
    """What is done, in this order: `log` (a line in `events.jsonl`), `terminal` (a warning), `notify` (a message),
    `stop` (with a checkpoint), `solved` (the same, as a success), `rollback` (weights and optimizers of the last good
    checkpoint)."""
    notify: tuple[str, ...] = ()
    """Where messages go, as addresses of apprise (extra `rl4sys[alerts]`): `mailto://…`, `json://host/path`, …;
    `env:NAME` takes the address from the environment, so that no secret is written into the run."""

    @model_validator(mode="after")
    def _check(self) -> AlertConfig:
        AlertCondition(self.when)
        require_complete(self.do, self.notify)
        return self

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.name or self.when


class StabilitySection(Config):
    """How much instability a run tolerates before it fails."""

    skipped_in_row: int = Field(MAX_SKIPPED_IN_ROW, ge=1)
    """Updates in a row that may be left out, because a loss or gradient is not finite, before the run rolls back."""
    max_rollbacks: int = Field(3, ge=0)
    """Times that a run may go back to a good checkpoint, for instability and alerts together. Then it fails."""
