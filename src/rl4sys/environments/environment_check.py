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

from rl4sys.environments.exactness import Environment, Grade, same
from rl4sys.environments.grading import random_action
from rl4sys.environments.lanes import Lanes
from rl4sys.environments.old_interface import OldInterface, checked_reset, refuse_old_step
from rl4sys.environments.spaces import ObservationConverter, action_spec
from rl4sys.seeding import Seeds

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


def observation_outside_space(make: Callable[[], Environment], seeds: Seeds, steps: int = 50) -> str | None:
    """Act at random for some steps; a sentence about the first observation with values outside its space, if any.

    Another dtype is no problem here, since observations are converted.
    """
    found: list[str] = []
    lanes = Lanes(lambda: _Watched(make(), found), 1, seeds, Grade.E3)
    try:
        rng, observation = seeds.generator("check"), lanes.reset()
        for _ in range(steps):
            observation = lanes.step(random_action(lanes.spec.action, observation, 1, rng)).observation
            if found:
                break
    finally:
        lanes.close()
    return f"The environment returned {found[0]}. Correct the space or the observation." if found else None


class _Watched(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Collects a sentence about each observation with values outside its space."""

    def __init__(self, environment: Environment, found: list[str]) -> None:
        super().__init__(environment)
        self._found = found

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        # Only what is given: the environment of a user may take a seed and nothing else.
        observation, info = checked_reset(self.env.reset(**arguments))
        self._look_at(observation)
        return observation, info

    def step(self, action: Any) -> Any:
        result: Any = self.env.step(action)
        self._look_at(result[0])
        return result

    def _look_at(self, observation: Any) -> None:
        if (problem := _outside(self.env.observation_space, observation)) is not None:
            self._found.append(problem)


def _outside(space: gymnasium.Space[Any], observation: Any, name: str = "") -> str | None:
    """What is wrong with the values of an observation, or of a part of it, if anything is."""
    match space:
        case gymnasium.spaces.Dict(spaces=parts):
            named = [(part, observation[key], f" '{key}'") for key, part in parts.items() if key in observation]
        case gymnasium.spaces.Tuple(spaces=members):
            named = [(part, value, f" {n}") for n, (part, value) in enumerate(zip(members, observation, strict=False))]
        case gymnasium.spaces.Box():
            array = np.asarray(observation, np.float64)
            # What was computed with another precision may exceed a bound by its rounding.
            slack = 1e-5 * np.maximum(1.0, np.abs(array))
            if array.shape != space.shape or not ((array < space.low - slack) | (array > space.high + slack)).any():
                return None
            return f"an observation{name} with values from {array.min():g} to {array.max():g}; its space is {space}"
        case _:
            return (
                None if space.contains(observation) else f"the observation{name} {observation!r}; its space is {space}"
            )
    found = (_outside(part, value, inner) for part, value, inner in named)
    return next((text for text in found if text is not None), None)


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
