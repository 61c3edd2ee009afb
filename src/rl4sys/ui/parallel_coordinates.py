"""Parallel coordinates of trials: an axis per setting, a line per trial, drawn by the server as SVG."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rl4sys.laboratory.trials.names import short_names, shown

WIDTH, HEIGHT = 1000.0, 300.0
_LEFT, _TOP, _BOTTOM = 70.0, 34.0, 16.0
_LOGARITHMIC = 8.0
"""Values that differ by more than this factor are spaced by their logarithms."""
_LEVELS = 5
"""Colours of lines, from the lowest scores to the highest."""
_MARK_DISTANCE = 13.0
"""Between two marks of an axis, so that their texts do not overlap."""
_MOST_CHOICES = 8
"""An axis of numbers with at most so many different values is marked at each of them."""


@dataclass(frozen=True, slots=True)
class CoordinateAxis:
    """A vertical axis: its place, its name, and marked values with their heights."""

    x: float
    name: str
    marks: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class CoordinateLine:
    """A trial: its points, and the level of its score from 0 to 4; None without a score."""

    points: str
    level: int | None
    title: str
    link: str | None


@dataclass(frozen=True, slots=True)
class ParallelCoordinates:
    """What the drawing consists of."""

    axes: tuple[CoordinateAxis, ...]
    lines: tuple[CoordinateLine, ...]


@dataclass(frozen=True, slots=True)
class PlottedTrial:
    """A trial with its values and its score."""

    title: str
    values: Mapping[str, Any]
    score: float | None
    link: str | None = None


def parallel_coordinates(trials: Sequence[PlottedTrial], score: str) -> ParallelCoordinates | None:
    """The drawing of trials with settings that differ and a score; None if there is nothing to see yet."""
    keys = [key for key in _keys(trials) if len({json.dumps(trial.values.get(key)) for trial in trials}) > 1]
    scored = [trial for trial in trials if trial.score is not None and math.isfinite(trial.score)]
    if not keys or len(scored) < 2:
        return None
    names = short_names(keys)
    scales = [_Scale.of([trial.values.get(key) for trial in scored]) for key in keys]
    scales.append(_Scale.of([trial.score for trial in scored]))
    step = (WIDTH - 2 * _LEFT) / (len(scales) - 1)
    places = [round(_LEFT + number * step, 1) for number in range(len(scales))]
    axes = tuple(
        CoordinateAxis(x, name, scale.marks)
        for x, name, scale in zip(places, [*(names[key] for key in keys), score], scales, strict=True)
    )
    ranked = sorted(scored, key=lambda trial: trial.score or 0.0)
    lines = []
    for place, trial in enumerate(ranked):
        values = [*(trial.values.get(key) for key in keys), trial.score]
        heights = [scale.height(value) for scale, value in zip(scales, values, strict=True)]
        points = " ".join(f"{x:g},{y:g}" for x, y in zip(places, heights, strict=True))
        lines.append(CoordinateLine(points, place * _LEVELS // len(ranked), trial.title, trial.link))
    return ParallelCoordinates(axes, tuple(lines))


@dataclass(frozen=True, slots=True)
class _Scale:
    """Turns values into heights: numbers by their size or logarithm, everything else by its place in a list."""

    low: float
    high: float
    is_logarithmic: bool
    choices: tuple[str, ...]
    marks: tuple[tuple[float, str], ...]

    @classmethod
    def of(cls, values: Sequence[Any]) -> _Scale:
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            numbers = sorted(set(map(float, values)))
            is_logarithmic = numbers[0] > 0 and numbers[-1] / numbers[0] > _LOGARITHMIC
            bare = cls(numbers[0], numbers[-1], is_logarithmic, (), ())
            marked = numbers if len(numbers) <= _MOST_CHOICES else bare.even()
            return replace(bare, marks=_apart([(bare.height(number), f"{number:.3g}") for number in marked]))
        choices = tuple(dict.fromkeys(sorted(map(json.dumps, values))))
        bare = cls(0.0, float(len(choices) - 1), False, choices, ())
        marks = [(bare.height(json.loads(each)), shown(json.loads(each))) for each in choices]
        return replace(bare, marks=_apart(marks))

    def height(self, value: Any) -> float:
        """From the top, in units of the drawing."""
        number = float(self.choices.index(json.dumps(value))) if self.choices else float(value)
        low, high = self.low, self.high
        if self.is_logarithmic:
            number, low, high = math.log(number), math.log(low), math.log(high)
        share = 0.5 if high == low else (number - low) / (high - low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def even(self) -> list[float]:
        """Five values that are spaced evenly."""
        shares = [place / 4 for place in range(5)]
        if self.is_logarithmic:
            return [self.low * (self.high / self.low) ** share for share in shares]
        return [self.low + share * (self.high - self.low) for share in shares]


def _apart(marks: Sequence[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    """The marks whose texts have room: the lowest and the highest value, and those between that keep their distance."""
    lowest, highest = marks[0], marks[-1]
    kept = [lowest]
    for mark in marks[1:-1]:
        if kept[-1][0] - mark[0] >= _MARK_DISTANCE and mark[0] - highest[0] >= _MARK_DISTANCE:
            kept.append(mark)
    return (*kept, highest) if len(marks) > 1 else (lowest,)


def _keys(trials: Sequence[PlottedTrial]) -> list[str]:
    return list(dict.fromkeys(key for trial in trials for key in trial.values))
