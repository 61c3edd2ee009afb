"""How long a decision can receive rewards: for a number of later decisions, or for a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rl4sys.client.section import SettingsError, shown

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")
_MOST_DECISIONS = 1 << 16
"""Decisions of an episode that a window in seconds holds back at most, so that memory is bounded."""


@dataclass(frozen=True, slots=True)
class RewardWindow:
    """The setting `reward_window`. The latest decisions, and those of the latest seconds if these are given."""

    decisions: int = 16
    seconds: float | None = None

    def __str__(self) -> str:
        return str(self.decisions) if self.seconds is None else f"{self.seconds:g}s"


DEFAULT_REWARD_WINDOW = RewardWindow()


def reward_window_from_settings(value: Any) -> RewardWindow:
    """`16` decisions, or a time such as `"30s"`."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return RewardWindow(value)
    if isinstance(value, str) and (found := _SECONDS.fullmatch(value.strip())):
        return RewardWindow(_MOST_DECISIONS, float(found[1]))
    raise SettingsError(
        f"reward_window: got {shown(value)}; expected a number of decisions, such as 16, or a time, such as '30s'."
    )
