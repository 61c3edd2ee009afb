"""The mark of a restore that has not ended: data beside it may be missing, so that no server may use them."""

from __future__ import annotations

from pathlib import Path

from rl4sys.server.options import ImpossibleSetup

RESTORING = ".restoring"
"""The directory, within the data directory, into which a backup is restored first."""


def is_interrupted(data: Path) -> bool:
    """Whether a restore has begun and not ended: its learners are moved out of that directory at the end."""
    return (data / RESTORING / "learners").exists()


def require_no_restore(data: Path) -> None:
    """Raise `ImpossibleSetup` if a restore was interrupted."""
    if is_interrupted(data):
        raise ImpossibleSetup(
            f"A restore into {data} was interrupted. Run rl4sys data restore again: it begins from the start."
        )
