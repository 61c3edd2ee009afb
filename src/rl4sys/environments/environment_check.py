"""Checks an environment as a user wrote it: what its methods return, against its spaces and the rules of Gymnasium."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import gymnasium
import numpy as np

from rl4sys.environments.exactness import Environment, same
from rl4sys.environments.old_interface import OldInterface, checked_reset, refuse_old_step
from rl4sys.environments.spaces import ObservationConverter, action_spec

_REPEATED = 100
"""Steps that are taken a second time."""
_PICTURE_SIDE = 16
"""Pixels per side from which an array of bytes is taken for a picture."""


@dataclass(slots=True)
class EnvironmentReport:
    """What was found. Problems must be corrected; remarks are worth knowing."""

    observation: str = ""
    action: str = ""
    episodes: int = 0
    steps: int = 0
    steps_per_second: float = 0.0
    is_repeatable: bool = False
    """Whether the same seed and actions gave the same episode."""
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a problem, once."""
        if text not in self.problems:
            self.problems.append(text)


def check_environment(make: Callable[[], Environment], steps: int = 500, seed: int = 0) -> EnvironmentReport:
    """Act at random for some steps, twice with the same seed, and report what is wrong."""
    report = EnvironmentReport()
    environment = make()
    try:
        report.observation, report.action = str(environment.observation_space), str(environment.action_space)
        _check_spaces(environment, report)
        began = time.perf_counter()
        first = _act(environment, report, steps, seed)
        report.steps_per_second = report.steps / max(time.perf_counter() - began, 1e-9)
        again = _act(environment, EnvironmentReport(), min(steps, _REPEATED), seed)
        report.is_repeatable = all(same(one, other) for one, other in zip(first, again, strict=False))
    except OldInterface as error:
        report.note(str(error))
    finally:
        environment.close()
    if not report.problems and not report.is_repeatable:
        report.remarks.append(
            "The same seed and actions give another episode: draw from self.np_random, and let reset call "
            "super().reset(seed=seed)."
        )
    return report


def _check_spaces(environment: Environment, report: EnvironmentReport) -> None:
    try:
        ObservationConverter(environment.observation_space, None)
        action_spec(environment.action_space)
    except (ValueError, TypeError) as error:
        report.note(str(error))
    space = environment.observation_space
    if isinstance(space, gymnasium.spaces.Box) and is_picture(space.shape, str(space.dtype)):
        report.remarks.append(
            f"Observations are pictures of shape {space.shape}: use network.actor.type=cnn (and that of the critic); "
            f"an MLP would flatten them into {math.prod(space.shape):,} inputs."
        )


def is_picture(shape: tuple[int, ...], dtype: str) -> bool:
    """Whether an array is one that a convolution is meant for."""
    return dtype == "uint8" and len(shape) in (2, 3) and min(sorted(shape)[-2:]) >= _PICTURE_SIDE


def _act(environment: Environment, report: EnvironmentReport, steps: int, seed: int) -> list[Any]:
    """The observations of some random steps."""
    environment.action_space.seed(seed)
    observation, _ = checked_reset(environment.reset(seed=seed))
    seen = [_copy(observation)]
    _check_observation(environment, observation, "reset", report)
    for _ in range(steps):
        result = _step(environment)
        seen.append(_copy(result[0]))
        report.steps += 1
        _check_step(environment, result, report)
        if result[2] or result[3]:
            report.episodes += 1
            observation, _ = checked_reset(environment.reset())
            _check_observation(environment, observation, "reset", report)
    if not report.episodes:
        report.remarks.append(
            f"No episode ended within {steps} steps; if none ever does, set environment.max_episode_steps."
        )
    return seen


def _step(environment: Environment) -> Any:
    result: Any = environment.step(environment.action_space.sample())
    try:
        _, _, _, _, _ = result
    except ValueError as error:
        refuse_old_step(error)
        raise
    return result


def _check_step(environment: Environment, result: Any, report: EnvironmentReport) -> None:
    observation, reward, terminated, truncated, info = result
    _check_observation(environment, observation, "step", report)
    if not isinstance(reward, Real) or not math.isfinite(float(reward)):
        report.note(f"step returned {reward!r} as a reward; expected one finite number.")
    if not all(isinstance(flag, bool | np.bool_) for flag in (terminated, truncated)):
        report.note(f"step returned {terminated!r} and {truncated!r}; expected booleans: terminated, truncated.")
    if not isinstance(info, dict):
        report.note(f"step returned {type(info).__name__} as info; expected a dict.")


def _check_observation(environment: Environment, observation: Any, method: str, report: EnvironmentReport) -> None:
    space = environment.observation_space
    beginning = f"{method} returned an observation outside its space"
    # One line is enough: the others differ in their values only.
    if space.contains(observation) or any(problem.startswith(beginning) for problem in report.problems):
        return
    found = ""
    if isinstance(space, gymnasium.spaces.Box):
        array = np.asarray(observation)
        if array.shape != space.shape:
            found = f", with shape {array.shape}"
        elif array.dtype != space.dtype:
            found = f", with dtype {array.dtype}"
        else:
            found = f", with values from {array.min():g} to {array.max():g}"
    report.note(f"{beginning}{found}; its space is {space}. Correct one of them.")


def _copy(observation: Any) -> Any:
    return np.array(observation) if isinstance(observation, np.ndarray) else observation
