"""The schema of a study: what `rl4sys tune` reads."""

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
    """Which trials are given up early, judged by their evaluations."""

    name: Literal["median", "hyperband", "none"] = "median"
    """`median` gives up what is worse than most were at the same step; `hyperband` lets few live long; or `none`."""
    startup_trials: int = Field(5, ge=0)
    """Trials that must be finished before `median` gives up any. More are fairer, and take time."""
    min_steps: int = Field(0, ge=0)
    """Steps that every trial is allowed. More protect slow starters; 0 lets the first evaluation decide."""
    reduction_factor: int = Field(3, ge=2)
    """`hyperband` keeps one of so many at each halving."""


class TuneConfig(ManyTrials):
    """A study, as YAML or JSON describes it."""

    space: dict[str, Any] = Field(min_length=1)
    """Dotted keys of the experiment, each with what it may be: `{uniform: [a, b]}`, `{log_uniform: [a, b]}`,
    `{int: [a, b]}`, `{log_int: [a, b]}`, `{choice: […]}` or just a list of values (a value may be a list)."""
    trials: int = Field(50, ge=1)
    """Trials of the whole study, those of earlier calls included."""
    pruner: PrunerSection = PrunerSection()
    """Which trials are given up early."""
    startup_trials: int = Field(10, ge=1)
    """Trials with values drawn at random, before those that went well are followed."""
    seed: int = Field(0, ge=0)
    """The root of what is suggested. With one job, the same seed suggests the same values."""

    def varied(self) -> Iterator[str]:
        """The keys of `space`."""
        return (f"space.{key}" for key in self.space)

    def ranges(self) -> dict[str, Range]:
        """What each key may be."""
        return {key: parse_range(f"space.{key}", value) for key, value in self.space.items()}

    def experiment(self, values: dict[str, Any]) -> ExperimentConfig:
        """The base with its overrides and the values of a trial."""
        return vary(BaseExperiment(self.base_config), {**self.overrides, **values})

    def example(self) -> ExperimentConfig:
        """One of the experiments that may be tried."""
        seeds = Seeds(self.seed)
        return self.experiment({key: range_.draw(seeds.generator(key)) for key, range_ in self.ranges().items()})

    def identity(self) -> str:
        """A hash of what must not change while a study goes on: what is tried, and how it is judged."""
        base = identity_of(self.base_config, self.overrides)
        identity = [base, self.space, self.seeds, self.score]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
