"""The progress of a run, on which schedules depend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come; schedules depend on nothing else."""

    steps: int = 0
    """Environment steps received so far."""
    total_steps: int | None = None
    """Length of the run in steps; unknown in a live system, where nothing is annealed."""

    @property
    def fraction(self) -> float:
        """From 0 at the start to 1 at the end; 0 if the end is unknown."""
        return min(1.0, self.steps / self.total_steps) if self.total_steps else 0.0
