"""The config of a study."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError
from rl4sys.experiments import ExperimentConfig
from rl4sys.experiments.changed_settings import is_fixed
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


class PopulationSection(Config):
    """Population-based training (arXiv:1711.09846): runs that train side by side, of which the worst become copies of
    the best, with settings that differ a little."""

    size: int = Field(8, ge=2)
    """Runs that train side by side. More try more settings, and take longer."""
    interval: int | None = Field(None, ge=1)
    """Steps between two comparisons, a multiple of `training.eval_frequency`, which it is by default. Shorter ones
    adapt settings more often, on less evidence."""
    quantile: float = Field(0.25, gt=0, le=0.5)
    """Share of the population that is replaced at a comparison, and from whose best copies are made."""
    perturb: tuple[float, float] = (0.8, 1.25)
    """Numbers of a copy are multiplied by one of these; of a list of choices it takes a neighbour."""
    resample: float = Field(0.25, ge=0, le=1)
    """Probability that a value of a copy is drawn from its range instead."""

    @model_validator(mode="after")
    def _check(self) -> PopulationSection:
        if not 0 < self.perturb[0] < 1 < self.perturb[1]:
            raise ValueError(f"perturb: got {list(self.perturb)}; expected one factor below 1 and one above")
        return self


class TuneConfig(ManyTrials):
    """A search for good settings with Optuna, or by population-based training."""

    space: dict[str, Any] = Field(min_length=1)
    """Dotted keys of the experiment, each with its range: `{uniform: [a, b]}`, `{log_uniform: [a, b]}`,
    `{int: [a, b]}`, `{log_int: [a, b]}`, `{choice: […]}` or just a list of values (a value may be a list)."""
    trials: int = Field(50, ge=1)
    """Trials of the whole study, including those of earlier calls."""
    pruner: PrunerSection = PrunerSection()
    """When trials are pruned."""
    startup_trials: int = Field(10, ge=1)
    """Trials with random values before the sampler learns from the results."""
    population: PopulationSection | None = None
    """If given, settings are adapted during training, by population-based training instead of trials of the sampler."""
    seed: int = Field(0, ge=0)
    """Seed of the sampler. With one job, the same seed suggests the same values; a population always repeats."""

    @model_validator(mode="after")
    def _check_population(self) -> TuneConfig:
        if self.population is None:
            return self
        for key in ("trials", "pruner", "startup_trials"):
            if key in self.model_fields_set:
                raise ValueError(f"{key}: has no effect with a population; remove it, and set population.size")
        if self.seeds is not None:
            raise ValueError("seeds: runs of a population have consecutive seeds, from experiment.seed on; remove it")
        for key in self.space:
            if is_fixed(key):
                raise ValueError(
                    f"space.{key}: cannot change within a run, as population-based training does; search for it "
                    f"without `population`, and set it in `overrides`"
                )
        return self

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
        identity: list[Any] = [base, self.space, self.seeds, self.score]
        if self.population is not None:
            identity.append([self.population.model_dump(mode="json"), self.seed])
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def boundaries(self) -> tuple[int, ...]:
        """The steps at which a population is compared; the last one is the end of its training."""
        if self.population is None:
            raise ConfigError("The study has no population")
        training = self.example().training
        interval = self.population.interval or training.eval_frequency
        if interval == 0 or training.eval_frequency == 0 or interval % training.eval_frequency:
            raise ConfigError(
                f"population.interval is {interval:,}, but training.eval_frequency is {training.eval_frequency:,}; "
                f"runs are compared by their evaluations, so make it a multiple of that"
            )
        total = training.total_timesteps
        return (*range(interval, total, interval), total)
