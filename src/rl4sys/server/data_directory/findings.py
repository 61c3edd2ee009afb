"""What a check of a data directory has found: one record for each thing, with what to do about it."""

from __future__ import annotations

from typing import NamedTuple


class DataFinding(NamedTuple):
    """One thing that is not as it should be."""

    learner: str
    """Empty for the data directory itself."""
    what: str
    where: str
    matters: bool
    """Whether something is lost, or the server cannot use the data as they are."""
    advice: str
