"""The config of a study."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from rl4sys.config import Config
from rl4sys.experiments import ExperimentConfig
from rl4sys.experiments.config import BaseExperiment
from rl4sys.laboratory.trials.config import ManyTrials, identity_of, vary
from rl4sys.laboratory.trials.ranges import Range, parse_range
from rl4sys.seeding import Seeds


class PrunerSection(Config):
    """When trials are pruned, based on their evaluations."""

    name: Literal["median", "hyperband", "asha", "none"] = "median"
    """`median` prunes trials below the median at the same step; `hyperband` gives many steps to few trials;
    `asha`, asynchronous successive halving, does that with a single bracket, and prunes earlier."""
    startup_trials: int = Field(5, ge=0)
    """Trials that must finish before `median` prunes any. More are fairer, but take longer."""
    min_steps: int = Field(0, ge=0)
    """Steps before a trial can be pruned. More protect slow starters; 0 allows it at the first evaluation."""
    reduction_factor: int = Field(3, ge=2)
    """`hyperband` and `asha` keep one of so many trials at each rung."""


class TuneConfig(ManyTrials):
    """A search for good settings with Optuna."""

    space: dict[str, Any] = Field(min_length=1)
    """Dotted keys of the experiment, each with its range: `{uniform: [a, b]}`, `{log_uniform: [a, b]}`,
    `{int: [a, b]}`, `{log_int: [a, b]}`, `{choice: […]}` or just a list of values (a value may be a list)."""
    trials: int = Field(50, ge=1)
    """Trials of the whole study, including those of earlier calls."""
    pruner: PrunerSection = PrunerSection()
    """When trials are pruned."""
    startup_trials: int = Field(10, ge=1)
    """Trials with random values before the sampler learns from the results."""
    seed: int = Field(0, ge=0)
    """Seed of the sampler. With one job, the same seed suggests the same values."""

    def varied(self) -> Iterator[str]:
        """The keys of `space`."""
        return (f"space.{key}" for key in self.space)

    def ranges(self) -> dict[str, Range]:
        """The range of each key."""
        return {key: parse_range(f"space.{key}", value) for key, value in self.space.items()}

    def experiment(self, values: dict[str, Any]) -> ExperimentConfig:
        """The base with its overrides and the values of a trial."""
        return vary(BaseExperiment(self.base_config), {**self.overrides, **values})

    def example(self) -> ExperimentConfig:
        """An experiment with random values from the ranges."""
        seeds = Seeds(self.seed)
        return self.experiment({key: range_.draw(seeds.generator(key)) for key, range_ in self.ranges().items()})

    def identity(self) -> str:
        """A hash of the settings that must not change during a study: its base, space, seeds and score."""
        base = identity_of(self.base_config, self.overrides)
        identity = [base, self.space, self.seeds, self.score]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
