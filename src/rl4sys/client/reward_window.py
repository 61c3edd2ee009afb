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
    """The setting `reward_window`, or `reward_timeout`.

    The latest decisions, and those of the latest seconds if these are given."""

    decisions: int = 16
    seconds: float | None = None
    cuts: bool = False
    """Whether a segment that is older than `seconds` is cut, so that a task without end sends all the time."""

    def __str__(self) -> str:
        return str(self.decisions) if self.seconds is None else f"{self.seconds:g}s"


DEFAULT_REWARD_WINDOW = RewardWindow()


def reward_window_from_settings(value: Any, timeout: Any = None) -> RewardWindow:
    """`16` decisions, or a time such as `"30s"`; or the `reward_timeout`, a time."""
    if timeout is not None:
        return _timeout(value, timeout)
    if value is None:
        return DEFAULT_REWARD_WINDOW
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return RewardWindow(value)
    if isinstance(value, str) and (found := _SECONDS.fullmatch(value.strip())):
        return RewardWindow(_MOST_DECISIONS, float(found[1]))
    raise SettingsError(
        f"reward_window: got {shown(value)}; expected a number of decisions, such as 16, or a time, such as '30s'."
    )


def _timeout(window: Any, value: Any) -> RewardWindow:
    if window is not None:
        raise SettingsError(
            f"reward_timeout: got {shown(value)} beside reward_window {shown(window)}; rewards come late by time or by "
            f"decisions. Leave one out."
        )
    found = _SECONDS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise SettingsError(f"reward_timeout: got {shown(value)}; expected a time with its unit, such as '5s'.")
    return RewardWindow(_MOST_DECISIONS, float(found[1]), cuts=True)
