"""Data that an operator has to decide about: what is covered by a checkpoint, what is missing, and the ways out."""

from __future__ import annotations

from pathlib import Path

from rl4sys.checkpoints import Checkpoints
from rl4sys.records import RecordsDamaged
from rl4sys.server.learners.stored_segments import StoredSegments

KEPT_CHECKPOINTS = 2
"""Checkpoints of a learner: should the newest be damaged, the one before serves."""


class DataHeld(Exception):
    """The data of a learner are damaged or incomplete: nothing is learned, stored or deleted until a decision."""


def newest_sound_checkpoint(directory: Path, end: int | None = None) -> int | None:
    """The position of the newest checkpoint of a learner whose bytes are those that were written; None without one.

    With `end`, the newest that is not past the end of the log.
    """
    checkpoints = Checkpoints(directory / "checkpoints", keep=0)
    steps = [step for step in checkpoints.steps() if end is None or step <= end]
    return next((step for step in reversed(steps) if checkpoints.fault(step) is None), None)


def covered_position(directory: Path) -> int:
    """Records below are not needed: a sound checkpoint has learned from them, and their identities are in a file."""
    checkpoint = newest_sound_checkpoint(directory)
    if checkpoint is None:
        return 0
    try:
        return min(checkpoint, StoredSegments.read(directory, first=1).position)
    except RecordsDamaged:
        return 0


def require_whole(directory: Path, end: int, stored: int = 0) -> None:
    """Raise `DataHeld` if a log ends before a sound checkpoint, or before segments that were acknowledged.

    Checkpoints are read only if one claims to be newer.
    """
    checkpoints = Checkpoints(directory / "checkpoints", keep=0)
    newer = [step for step in checkpoints.steps() if step > end]
    sound = next((step for step in reversed(newer) if checkpoints.fault(step) is None), None)
    if sound is not None:
        raise DataHeld(
            f"The log of learner '{directory.name}' ends before record {end}, and there is a sound checkpoint of "
            f"{sound} records: {sound - end} acknowledged records are missing. {ways_out(directory)}"
        )
    if stored > end:
        raise DataHeld(
            f"The log of learner '{directory.name}' ends before record {end}, and {stored} records were stored: "
            f"{stored - end} acknowledged records are missing. {ways_out(directory)}"
        )


def ways_out(directory: Path) -> str:
    """What an operator can do about damaged data."""
    repair = f"rl4sys data repair {directory.parent.parent} --learner '{directory.name}'"
    return (
        "Nothing is learned or stored for this learner, and nothing was deleted. End the server, then restore a backup "
        f"(rl4sys data restore); or keep the weights of the newest sound checkpoint: {repair} --from-checkpoint; or "
        f"learn again from the readable log, as a new lineage: {repair} --from-log."
    )
