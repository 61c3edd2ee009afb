"""Environments with the interface of the old `gym`: recognised, and answered with what to change."""

from __future__ import annotations

from typing import Any

_STEP = "(expected 5, got 4)"


class OldInterface(TypeError):
    """An environment whose `reset` or `step` returns what the old `gym` expected."""


def refuse_old_step(error: ValueError) -> None:
    """Raise what to change if a `step` returned four values; any other error is left to the caller."""
    if _STEP not in str(error):
        return
    raise OldInterface(
        "The environment's step returned 4 values, as in the old gym; expected observation, reward, terminated, "
        "truncated, info. Split done into terminated (the task ended) and truncated (a time limit)."
    ) from error


def checked_reset(result: Any) -> tuple[Any, Any]:
    """Observation and info of a reset; an observation alone, as in the old `gym`, is refused."""
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
        raise OldInterface(
            f"The environment's reset returned {type(result).__name__}; expected observation and info. Let it return "
            f"(observation, {{}}), and take the arguments seed and options."
        )
    return result
