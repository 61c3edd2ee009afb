"""What an operator wants to know about an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """The state of an agent at one moment."""

    connected: bool
    """Whether the last call to the server succeeded."""
    learner: str | None
    """Who learns; None before the first policy."""
    version: int | None
    """Of the weights that decide now."""
    age: float | None
    """Seconds since that version arrived."""
    decisions: int
    """Taken by the policy since the start."""
    fallback_decisions: int
    """Taken by the fallback, and not recorded."""
    open_episodes: int
    backlog: int
    """Segments that wait to be sent or acknowledged."""
    backlog_bytes: int
    acknowledged: int
    """Segments that the server has for ever."""
    drops: Mapping[str, int]
    """Segments that will never be sent, by reason; under `no_final_observation` and `schema_changed`, decisions."""
    late_rewards: int
    """Rewards for decisions that were sealed already."""
    damaged_patches: int
    """Updates that did not check out and were pulled in full."""
    last_error: str | None
    stopped: str | None
    """Why nothing is sent or received at present, though the server is there or a thread died; None while it is."""
