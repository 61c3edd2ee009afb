"""The checkpoints of a learner on the disk, for its status."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from rl4sys.checkpoints import Checkpoints


class SavedCheckpoint(NamedTuple):
    """One checkpoint."""

    position: int
    """It has learned from every record below."""
    written: float
    """In seconds since 1970."""
    bytes: int
    """Without replayed experience, which checkpoints share."""


def saved_checkpoints(directory: Path) -> tuple[SavedCheckpoint, ...]:
    """The checkpoints of a learner, the newest last."""
    checkpoints = Checkpoints(directory / "checkpoints", keep=0)
    found = []
    for position in checkpoints.steps():
        try:
            found.append(SavedCheckpoint(position, checkpoints.written(position), checkpoints.size(position)))
        except FileNotFoundError:
            # The worker has removed it meanwhile, since there is a newer one.
            continue
    return tuple(found)
