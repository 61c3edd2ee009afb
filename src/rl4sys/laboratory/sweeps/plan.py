"""The config of a sweep, and its trials."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from rl4sys.config import Config, ConfigError
from rl4sys.experiments.config import BaseExperiment
from rl4sys.laboratory.trials.config import ManyTrials, identity_of, placed, vary
from rl4sys.laboratory.trials.names import key_of, label, slug
from rl4sys.laboratory.trials.ranges import Range, parse_range
from rl4sys.laboratory.trials.trial import Trial
from rl4sys.seeding import Seeds

_MAX_NAME = 100


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


def plan(sweep: SweepConfig) -> tuple[Trial, ...]:
    """All trials of a sweep in the order they are started: seed by seed."""
    seeds: tuple[int | None, ...] = sweep.seeds or (None,)
    points = list(_points(sweep))
    factory = _TrialFactory(sweep, BaseExperiment(sweep.base_config), identity_of(sweep.base_config, sweep.overrides))
    trials = tuple(factory.trial(changes, seed) for seed in seeds for changes in points)
    if len({trial.key for trial in trials}) < len(trials):
        raise ConfigError("Two trials of the sweep are equal; give each setting one key only.")
    return trials


def _points(sweep: SweepConfig) -> Iterator[dict[str, Any]]:
    """The configurations: every combination of the lists, with each sample from the ranges."""
    lists: dict[str, tuple[Any, ...]] = {}
    ranges: dict[str, Range] = {}
    for key, value in sweep.sweep.items():
        found = parse_range(f"sweep.{key}", value)
        if isinstance(value, Mapping):
            ranges[key] = found
        else:
            lists[key] = tuple(value)
    for combination in itertools.product(*lists.values()):
        for draw in _draws(sweep, ranges):
            chosen = {**dict(zip(lists, combination, strict=True)), **draw}
            yield {key: chosen[key] for key in sweep.sweep}


def _draws(sweep: SweepConfig, ranges: Mapping[str, Range]) -> list[dict[str, Any]]:
    if sweep.random is None:
        if ranges:
            raise ConfigError(
                f"sweep.{next(iter(ranges))}: a range needs a number of samples; add `random: {{trials: 20}}`"
            )
        return [{}]
    if not ranges:
        raise ConfigError(
            "random: there is no range in `sweep` to sample from; add one, such as `{log_uniform: [1e-5, 1e-2]}`"
        )
    # Each key and sample has its own seed: more samples, or one more key, do not change the others.
    seeds = Seeds(sweep.random.seed)
    draws: list[dict[str, Any]] = []
    for number in range(sweep.random.trials):
        draw = {key: range_.draw(seeds.generator("sweep", key, number)) for key, range_ in ranges.items()}
        # A small range repeats values; each is tried once.
        if draw not in draws:
            draws.append(draw)
    return draws


@dataclass(frozen=True, slots=True)
class _TrialFactory:
    """Builds the trials of one sweep."""

    sweep: SweepConfig
    base: BaseExperiment
    identity: Mapping[str, Any]

    def trial(self, changes: Mapping[str, Any], seed: int | None) -> Trial:
        chosen = {} if seed is None else {"experiment.seed": seed}
        text = label(changes)
        named = {"experiment.name": f"{self.sweep.name}-{slug(text)}"[:_MAX_NAME]}
        config = vary(self.base, {**self.sweep.overrides, **named, **changes, **chosen})
        number = config.experiment.seed
        key = key_of(f"{text} seed{number}", [self.identity, dict(changes), number])
        return Trial(key, placed(config, self.sweep.place / key), changes)
