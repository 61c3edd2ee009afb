"""Which failures are retried, and after what pause."""

from __future__ import annotations

import enum
import random

from rl4sys.wire import Failure, FailureReason
from rl4sys.wire.calls import CallFailed, Code

_FIRST, _LONGEST = 0.1, 3.0
"""Seconds. The longest is short enough for a client to catch up within 5 s after the network recovers."""
REFUSED_SECONDS = 30.0
"""Seconds between two attempts of a refused client: the cause may have been repaired meanwhile."""
_LONGEST_ASKED = 60.0
"""Longest pause in seconds that a server may ask for; a broken server must not silence a client for days."""


class Remedy(enum.Enum):
    """What to do about a failed call."""

    WAIT = enum.auto()
    """Try again later."""
    JOIN = enum.auto()
    """Join again, then repeat the call."""
    REPAIR = enum.auto()
    """Report it to the user: the call fails again until the cause is repaired."""


_TRANSIENT = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.INTERNAL, Code.CANCELLED)
_JOIN_AGAIN = (
    FailureReason.UNKNOWN_SESSION,
    FailureReason.SCHEMA,
    FailureReason.LEARNER_FAILED,
    FailureReason.UNSPECIFIED,
)


def remedy(error: CallFailed) -> Remedy:
    """What to do about a failure, by the table in training.proto."""
    if error.code in _TRANSIENT:
        return Remedy.WAIT
    if error.code is Code.FAILED_PRECONDITION and error.failure.reason in _JOIN_AGAIN:
        return Remedy.JOIN
    return Remedy.REPAIR


def is_unanswered(problem: Exception) -> bool:
    """Whether no reply came, rather than one that reports the problem: the network or a proxy failed the call."""
    unanswered = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
    return isinstance(problem, CallFailed) and problem.code in unanswered and problem.failure == Failure()


def is_unreachable(problem: Exception | None) -> bool:
    """Whether no connection to the server can be made at present."""
    return isinstance(problem, CallFailed) and problem.code is Code.UNAVAILABLE and is_unanswered(problem)


def asked_pause(retry_after_ms: int) -> float:
    """The pause in seconds that the server asks for, within limits."""
    return min(_LONGEST_ASKED, retry_after_ms / 1000)


class Backoff:
    """Exponential backoff with jitter, so that many clients do not reconnect at once."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failures = 0

    def succeeded(self) -> None:
        """Begin the next failure with a short pause again."""
        self._failures = 0

    def failed(self, asked: float = 0.0) -> float:
        """Seconds to wait after this failure; at least what the server asked for."""
        pause = min(_LONGEST, _FIRST * 2.0**self._failures) * self._rng.uniform(0.5, 1.0)
        self._failures = min(self._failures + 1, 16)
        return max(pause, asked * self._rng.uniform(1.0, 1.25))
