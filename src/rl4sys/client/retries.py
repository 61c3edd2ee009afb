"""Which failures pass by themselves, and how long to wait for it."""

from __future__ import annotations

import enum
import random

from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code

_FIRST, _LONGEST = 0.1, 3.0
"""Seconds. The longest is short enough that a client has caught up within 5 s of a healed network."""
REFUSED_SECONDS = 30.0
"""Between two attempts of a client that is refused: whoever is responsible may have put it right."""
_LONGEST_ASKED = 60.0
"""Seconds that a server may ask for; one that names days is broken, and must not keep a client away for so long."""


class Remedy(enum.Enum):
    """What to do about a failed call."""

    WAIT = enum.auto()
    """Try again later."""
    JOIN = enum.auto()
    """Join again, then repeat the call."""
    REPAIR = enum.auto()
    """Tell the user, who has to do something about it; until then the same call fails again."""


_PASSING = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.INTERNAL, Code.CANCELLED)
_JOIN_AGAIN = (
    FailureReason.UNKNOWN_SESSION,
    FailureReason.SCHEMA,
    FailureReason.LEARNER_FAILED,
    FailureReason.UNSPECIFIED,
)


def remedy(error: CallFailed) -> Remedy:
    """What helps against a failure, by the table in training.proto."""
    if error.code in _PASSING:
        return Remedy.WAIT
    if error.code is Code.FAILED_PRECONDITION and error.failure.reason in _JOIN_AGAIN:
        return Remedy.JOIN
    return Remedy.REPAIR


def asked_pause(retry_after_ms: int) -> float:
    """Seconds that the server asks to wait, as far as it is believed."""
    return min(_LONGEST_ASKED, retry_after_ms / 1000)


class Backoff:
    """Longer and longer pauses with chance in them, so that many clients do not come back at once."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures = 0

    def succeeded(self) -> None:
        """Start again with a short pause."""
        self._failures = 0

    def failed(self, asked: float = 0.0) -> float:
        """Seconds to wait now; at least as long as the server asked for."""
        pause = min(_LONGEST, _FIRST * 2.0**self._failures) * self._rng.uniform(0.5, 1.0)
        self._failures = min(self._failures + 1, 16)
        return max(pause, asked * self._rng.uniform(1.0, 1.25))
