"""Schedules: by which factor a setting, such as the learning rate, is multiplied at each point of a run."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError, Registry
from rl4sys.config.plugins import imported_module
from rl4sys.engine.progress import Progress

_PREFIX = "object:"
_known: dict[str, Callable[[float], float]] = {}
"""Functions that only this process knows."""


class ScheduleConfig(Config):
    """A factor of a setting that changes over the run. It depends on the number of steps and on nothing else."""

    steps: int | None = Field(None, ge=1)
    """Environment steps that count as the whole run, for live systems, whose run has no known end."""

    @abstractmethod
    def factor_at(self, done: float) -> float:
        """The factor where this fraction of the run is done, from 0 to 1."""

    def factor(self, progress: Progress) -> float:
        """The factor at this point of the run."""
        return self.factor_at(progress.fraction if self.steps is None else min(1.0, progress.steps / self.steps))


SCHEDULES: Registry[ScheduleConfig] = Registry("schedule", ScheduleConfig, key="type")
Schedules: TypeAlias = Mapping[str, ScheduleConfig]
"""Schedules by the name of the setting that each multiplies."""


class RampConfig(ScheduleConfig):
    """The settings of factors that move from 1 to `end` within a part of the run."""

    end: float = Field(0.0, ge=0)
    """The factor at the end: 0.1 leaves a tenth of the setting."""
    start_fraction: float = Field(0.0, ge=0, lt=1)
    """Part of the run that is done when the factor begins to change."""
    end_fraction: float = Field(1.0, gt=0, le=1)
    """Part of the run that is done when it has reached `end`, where it stays."""

    @model_validator(mode="after")
    def _check(self) -> RampConfig:
        if self.start_fraction >= self.end_fraction:
            raise ValueError(f"start_fraction is {self.start_fraction}; expected less than {self.end_fraction}")
        return self

    def moved(self, done: float) -> float:
        """The part of the way that lies behind, from 0 to 1."""
        return min(1.0, max(0.0, (done - self.start_fraction) / (self.end_fraction - self.start_fraction)))


@SCHEDULES.register("linear")
class LinearScheduleConfig(RampConfig):
    """Changes evenly."""

    def factor_at(self, done: float) -> float:
        """A straight line."""
        return 1.0 + self.moved(done) * (self.end - 1.0)


@SCHEDULES.register("cosine")
class CosineScheduleConfig(RampConfig):
    """Changes slowly at first and at the end (arXiv:1608.03983, without restarts)."""

    def factor_at(self, done: float) -> float:
        """Half a period of a cosine."""
        return self.end + (1.0 - self.end) * 0.5 * (1.0 + math.cos(math.pi * self.moved(done)))


@SCHEDULES.register("step")
class StepScheduleConfig(ScheduleConfig):
    """Multiplied by `decay` at each of some points."""

    at: tuple[float, ...] = Field((0.5, 0.75), min_length=1)
    """Parts of the run, from 0 to 1, after which the factor changes."""
    decay: float = Field(0.1, ge=0)
    """By what it is multiplied there."""

    def factor_at(self, done: float) -> float:
        """A power of `decay`."""
        return float(self.decay ** sum(done >= point for point in self.at))


@SCHEDULES.register("function")
class FunctionScheduleConfig(ScheduleConfig):
    """A function of your own, of the part of the run that is done (0 to 1), that returns the factor."""

    function: str
    """`module:function`; the module may lie in the current directory. In Python, give the function itself."""

    def factor_at(self, done: float) -> float:
        """What the function returns, which must be finite and not negative."""
        found = _function(self.function)(done)
        try:
            factor = float(found)
        except (TypeError, ValueError):
            factor = math.nan
        if not (math.isfinite(factor) and factor >= 0):
            raise ConfigError(
                f"The schedule {self.function} returned {found!r:.80} for {done:.3f}; expected a factor from 0."
            )
        return factor


def as_schedule(value: Any) -> Any:
    """What a user may give for a schedule: its type alone, a function, or a mapping."""
    if isinstance(value, str):
        return {"type": "function", "function": value} if ":" in value else {"type": value}
    if callable(value) and not isinstance(value, ScheduleConfig):
        return {"type": "function", "function": _name(value)}
    return value


def _function(name: str) -> Callable[[float], float]:
    if name in _known:
        return _known[name]
    if name.startswith(_PREFIX):
        raise ConfigError(
            f"The schedule {name} was a function of the Python program that started the run. Define it in a module, "
            f"and write module:function in its place into the run's config.yaml."
        )
    module, _, attribute = name.partition(":")
    try:
        found = getattr(imported_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"The schedule {name} is not found ({error}); expected module:function.") from error
    if not callable(found):
        raise ConfigError(f"The schedule {name} is {found!r:.80}; expected a function.")
    return _known.setdefault(name, found)


def _name(function: Callable[[float], float]) -> str:
    """`module:function` if other processes can import it; else a name that this process alone knows."""
    module, label = str(getattr(function, "__module__", "")), str(getattr(function, "__qualname__", ""))
    if module != "__main__" and label.isidentifier() and getattr(sys.modules.get(module), label, None) is function:
        return f"{module}:{label}"
    names = (f"{_PREFIX}schedule-{number}" for number in range(1, 1_000_000))
    name = next(name for name in names if _known.get(name, function) is function)
    _known[name] = function
    return name
