"""The schema of a sweep: what `rl4sys sweep` reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from rl4sys.config import Config
from rl4sys.laboratory.trials.config import ManyTrials


class RandomSection(Config):
    """Draws from ranges."""

    trials: int = Field(ge=1)
    """Draws. Each combination of the lists gets the same ones, so that lists are compared fairly."""
    seed: int = Field(0, ge=0)
    """The root of the draws: the same seed draws the same values."""


class SweepConfig(ManyTrials):
    """A sweep, as YAML or JSON describes it."""

    sweep: dict[str, Any] = Field(min_length=1)
    """Dotted keys of the experiment, each with a list of values (a value may be a list), or with a range to draw
    from: `{uniform: [a, b]}`, `{log_uniform: [a, b]}`, `{int: [a, b]}`, `{log_int: [a, b]}`, `{choice: […]}`."""
    random: RandomSection | None = None
    """How often to draw from the ranges; needed if there are any."""

    def varied(self) -> Iterator[str]:
        """The keys of `sweep`."""
        return (f"sweep.{key}" for key in self.sweep)
