"""The decisions of population-based training: who is replaced by a copy of whom, and with which values.

They depend on scores, values and the seed alone, so a study that is continued after a kill decides what it would have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rl4sys.config import ConfigError
from rl4sys.laboratory.studies.config import PopulationSection
from rl4sys.laboratory.trials.ranges import Choice, IntUniform, LogIntUniform, Range
from rl4sys.seeding import Seeds

_DRAWS = 20
"""How often values that are invalid together are drawn again."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A trial that ends, and the copy of a better one that takes its place."""

    trial: int
    """The number of the copy."""
    replaces: int
    parent: int
    """The trial that is copied."""
    values: Mapping[str, Any]
    """The values of the copy from there on."""

    def to_values(self) -> dict[str, Any]:
        """As plain values, for the journal."""
        return asdict(self)


def worst_and_best(scores: Mapping[int, float | None], section: PopulationSection) -> tuple[list[int], list[int]]:
    """The trials to replace, and those to copy, the best first; a trial without a finite score is replaced.

    Of equal scores the lower number is better, and a trial that is as good as one of the best stays.
    """
    known = {number: score for number, score in scores.items() if score is not None and math.isfinite(score)}
    ranked = sorted(known, key=lambda number: (-known[number], number))
    count = max(1, math.floor(section.size * section.quantile))
    best = ranked[:count]
    worst = [number for number in ranked[count:][-count:] if known[number] < known[best[-1]]]
    lost = [number for number in scores if number not in known]
    return sorted([*worst, *lost]), best


def initial_values(
    ranges: Mapping[str, Range], seeds: Seeds, member: int, check: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Values of a first member, drawn from the ranges; `check` raises `ConfigError` for those that do not fit."""
    for attempt in range(_DRAWS):
        values = {
            key: range_.draw(seeds.generator("population", member, attempt, key)) for key, range_ in ranges.items()
        }
        try:
            check(values)
        except ConfigError:
            if attempt == _DRAWS - 1:
                raise
            continue
        return values
    raise AssertionError("unreachable")


def explore(
    values: Mapping[str, Any],
    ranges: Mapping[str, Range],
    section: PopulationSection,
    rng: np.random.Generator,
    check: Callable[[dict[str, Any]], object],
) -> dict[str, Any]:
    """Values near those of a parent; its own if none that fit are found."""
    for _ in range(_DRAWS):
        found = {key: _explored(values[key], range_, section, rng) for key, range_ in ranges.items()}
        try:
            check(found)
        except ConfigError:
            continue
        return found
    return dict(values)


def replace_worst(
    scores: Mapping[int, float | None],
    first: int,
    section: PopulationSection,
    rng_of: Callable[[int], np.random.Generator],
    explored: Callable[[int, np.random.Generator], dict[str, Any]],
) -> Sequence[Replacement]:
    """What happens at a comparison; copies are numbered from `first` on.

    `rng_of` gives the generator for the replacement of a trial, `explored` the new values of a copy of a trial.
    """
    worst, best = worst_and_best(scores, section)
    found = []
    for place, number in enumerate(worst if best else ()):
        rng = rng_of(number)
        parent = best[int(rng.integers(len(best)))]
        found.append(Replacement(first + place, number, parent, explored(parent, rng)))
    return found


def _explored(value: Any, range_: Range, section: PopulationSection, rng: np.random.Generator) -> Any:
    if rng.random() < section.resample:
        return range_.draw(rng)
    upwards = bool(rng.integers(2))
    if isinstance(range_, Choice):
        place = range_.values.index(value) + (1 if upwards else -1)
        return range_.values[min(max(place, 0), len(range_.values) - 1)]
    changed = value * section.perturb[upwards]
    if isinstance(range_, IntUniform | LogIntUniform):
        # At least by one: small numbers would stay as they are.
        changed = max(round(changed), value + 1) if upwards else min(round(changed), value - 1)
    return min(max(changed, range_.low), range_.high)
