"""The errors of calls, with their codes."""

from __future__ import annotations

from rl4sys.wire import Failure, FailureReason
from rl4sys.wire.calls import CallFailed, Code


def invalid(message: str) -> CallFailed:
    """The request breaks the contract; the same one will fail again."""
    return CallFailed(Code.INVALID_ARGUMENT, message)


def precondition(reason: FailureReason, message: str) -> CallFailed:
    """The client must do something first; the reason says what."""
    return CallFailed(Code.FAILED_PRECONDITION, message, Failure(reason))


def unavailable(message: str, reason: FailureReason = FailureReason.UNSPECIFIED, retry_after_ms: int = 0) -> CallFailed:
    """The call may succeed later."""
    return CallFailed(Code.UNAVAILABLE, message, Failure(reason, retry_after_ms))


def exhausted(reason: FailureReason, message: str, retry_after_ms: int) -> CallFailed:
    """A limit is reached; try again after the delay."""
    return CallFailed(Code.RESOURCE_EXHAUSTED, message, Failure(reason, retry_after_ms))


def cancelled() -> CallFailed:
    """The client is gone, and no one reads the answer."""
    return CallFailed(Code.CANCELLED, "The client ended the call.")


def draining() -> CallFailed:
    """The server is shutting down."""
    return unavailable(
        "The server is shutting down. Keep what is not acknowledged, and connect again.", FailureReason.DRAINING, 1_000
    )
