"""The values of a setting in a sweep or study: a list, or a range to sample from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rl4sys.config import ConfigError


@dataclass(frozen=True, slots=True)
class Uniform:
    """Numbers from low to high, uniformly."""

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """Sample a number."""
        return float(rng.uniform(self.low, self.high))


@dataclass(frozen=True, slots=True)
class LogUniform:
    """Numbers from low to high, uniformly on a logarithmic scale."""

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float:
        """Sample a number."""
        drawn = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return min(max(drawn, self.low), self.high)


@dataclass(frozen=True, slots=True)
class IntUniform:
    """Integers from low to high, both included."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """Sample a number."""
        return int(rng.integers(self.low, self.high, endpoint=True))


@dataclass(frozen=True, slots=True)
class LogIntUniform:
    """Integers from low to high, uniformly on a logarithmic scale."""

    low: int
    high: int

    def draw(self, rng: np.random.Generator) -> int:
        """Sample a number."""
        # From half below to half above, so that the ends are not less likely.
        drawn = math.exp(rng.uniform(math.log(self.low - 0.5), math.log(self.high + 0.5)))
        return min(max(round(drawn), self.low), self.high)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values, uniformly."""

    values: tuple[Any, ...]

    def draw(self, rng: np.random.Generator) -> Any:
        """Sample a value."""
        return self.values[int(rng.integers(len(self.values)))]


Range = Uniform | LogUniform | IntUniform | LogIntUniform | Choice

_KINDS = ("uniform", "log_uniform", "int", "log_int", "choice")


def parse_range(key: str, value: Any) -> Range:
    """Parse a range such as `{uniform: [0, 1]}`; a plain list is a choice."""
    if isinstance(value, list | tuple):
        return Choice(_distinct(key, value))
    if not isinstance(value, Mapping) or len(value) != 1 or next(iter(value)) not in _KINDS:
        raise ConfigError(
            f"{key}: got {value!r}; expected a list of values, or one of "
            f"{', '.join(f'{{{kind}: […]}}' for kind in _KINDS)}"
        )
    ((kind, content),) = value.items()
    if kind == "choice":
        return Choice(_distinct(f"{key}.choice", content))
    low, high = _bounds(f"{key}.{kind}", content)
    if kind.startswith("log_") and low <= 0:
        raise ConfigError(f"{key}.{kind}: got a lower bound of {low}; expected more than 0 for a logarithmic scale")
    if kind == "uniform":
        return Uniform(float(low), float(high))
    if kind == "log_uniform":
        return LogUniform(float(low), float(high))
    if not (float(low).is_integer() and float(high).is_integer()):
        raise ConfigError(f"{key}.{kind}: got {list(content)}; expected whole numbers")
    return IntUniform(int(low), int(high)) if kind == "int" else LogIntUniform(int(low), int(high))


def _bounds(place: str, content: Any) -> tuple[float, float]:
    if (
        not isinstance(content, list | tuple)
        or len(content) != 2
        or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in content)
        or not content[0] < content[1]
    ):
        raise ConfigError(f"{place}: got {content!r}; expected two numbers, the smaller one first")
    return content[0], content[1]


def _distinct(key: str, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise ConfigError(f"{key}: got {values!r}; expected a list with at least one value")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ConfigError(f"{key}: {value!r} is listed twice; list it once")
    return tuple(values)
