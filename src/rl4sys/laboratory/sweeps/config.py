"""The config of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from rl4sys.config import Config
from rl4sys.laboratory.trials.config import ManyTrials


class RandomSection(Config):
    """Random sampling from ranges."""

    trials: int = Field(ge=1)
    """Samples. Each combination of the lists gets the same samples, so that lists are compared fairly."""
    seed: int = Field(0, ge=0)
    """The same seed samples the same values."""


class SweepConfig(ManyTrials):
    """A fixed plan of trials: all combinations of lists of values, and samples from ranges."""

    sweep: dict[str, Any] = Field(min_length=1)
    """Dotted keys of the experiment, each with a list of values (a value may be a list), or with a range to sample
    from: `{uniform: [a, b]}`, `{log_uniform: [a, b]}`, `{int: [a, b]}`, `{log_int: [a, b]}`, `{choice: […]}`."""
    random: RandomSection | None = None
    """How often to sample from the ranges; required if there are any."""

    def varied(self) -> Iterator[str]:
        """The keys of `sweep`."""
        return (f"sweep.{key}" for key in self.sweep)
