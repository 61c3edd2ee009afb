"""The condition of a learner."""

from __future__ import annotations

import enum


class Condition(enum.Enum):
    """What becomes of a learner's worker. Whatever it is, versions that exist are served and pushes are stored."""

    STARTING = enum.auto()
    """It waits to be started, restores its state, or was restarted after a failure."""
    RUNNING = enum.auto()
    REFUSED = enum.auto()
    """The learner cannot be created from its setup, and never was."""
    FAILED = enum.auto()
    """Its own code fails at the same record again and again; `restart` tries once more."""
    STOPPED = enum.auto()
    """The server is closing."""
    PAUSED = enum.auto()
    """Ended by order of an operator."""
    SLEEPING = enum.auto()
    """Ended because nothing has arrived for a while."""
    HELD = enum.auto()
    """Its data are damaged or incomplete, and an operator has to decide. Nothing is deleted."""
