"""Who decides at present, and what is recorded: the plan that all acting threads read by reference."""

from __future__ import annotations

from typing import NamedTuple

from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import DecidedBy

OFF_REASONS = {
    "control": "an operator ordered it off",
    "kill_file": "the kill file exists",
    "lease": "the server was silent for longer than the lease",
    "no_policy": "none has arrived yet",
    "no_answer": "the server did not answer in time",
    "level": "the client is at the level `off`",
}
"""Why the policy does not decide, for people."""


class ActingPlan(NamedTuple):
    """How decisions are taken. Any change is another object, so that a decision compares one reference."""

    snapshot: Snapshot | None = None
    """The policy; None before the first one arrives."""
    off: str = "no_policy"
    """Why the policy does not decide: `control`, `kill_file`, `lease`, `no_policy`, `no_answer` or `level`; empty if
    it does."""
    decided_by: DecidedBy = DecidedBy.FALLBACK
    records: bool = False
    """Whether decisions are recorded."""
    observes: bool = False
    """Whether the policy decides beside the fallback, to be compared."""
    asks: bool = False
    """Whether the policy decides on the server."""
