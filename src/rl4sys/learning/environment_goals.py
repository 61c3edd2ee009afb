"""The goal reward of an environment, computed by the functions that the environment defines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.wrappers import FrameSkip
from rl4sys.experience import Array
from rl4sys.replay import ACHIEVED, DESIRED, UnsuitableBuffer

_ADVICE = "Correct the environment, or set buffer.goal_reward={type: distance, threshold: …} to match it."
_PROBES = 4

GoalFunction = Callable[[Array, Array, dict[str, Any]], Any]


class EnvironmentGoals:
    """Calls an environment's `compute_reward` and, if it exists, `compute_terminated` with whole batches."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Checks the functions of the environment, whose state does not matter."""
        _require_single_steps(environment)
        # The functions belong to the environment, which must stay open while they are used.
        self._environment = environment
        self._reward: GoalFunction = _function(environment, "compute_reward")
        self._terminated: GoalFunction | None = None
        if environment.has_wrapper_attr("compute_terminated"):
            self._terminated = _function(environment, "compute_terminated")
        achieved, desired = _sample_goals(environment)
        _require_batches("compute_reward", self.reward, achieved, desired)
        if self._terminated is not None:
            _require_batches("compute_terminated", self._terminates, achieved, desired)

    def reward(self, achieved: Array, desired: Array) -> Array:
        """The rewards [B]."""
        return np.asarray(self._reward(achieved, desired, {}), np.float32)

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Whether reaching the goal terminates the episode [B]; None if it never does."""
        return None if self._terminated is None else self._terminates(achieved, desired)

    def _terminates(self, achieved: Array, desired: Array) -> Array:
        assert self._terminated is not None
        # Some environments return a single False for all rows.
        return np.broadcast_to(np.asarray(self._terminated(achieved, desired, {}), bool), (len(achieved),))


def _require_single_steps(environment: gymnasium.Env[Any, Any]) -> None:
    """Refuse frame skipping: its rewards are sums over steps whose achieved goals are not recorded."""
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, FrameSkip):
            raise UnsuitableBuffer(
                "With environment.frame_skip a reward is the sum over several steps, which cannot be computed for "
                "another goal. Set environment.frame_skip=1 or buffer.type=uniform."
            )
        environment = environment.env


def _function(environment: gymnasium.Env[Any, Any], name: str) -> GoalFunction:
    if not environment.has_wrapper_attr(name):
        raise UnsuitableBuffer(
            f"{_name(environment)} has no function {name}(achieved_goal, desired_goal, info). {_ADVICE}"
        )
    function: GoalFunction = environment.get_wrapper_attr(name)
    return function


def _sample_goals(environment: gymnasium.Env[Any, Any]) -> tuple[Array, Array]:
    """Achieved and desired goals [B, …] to test the functions with; the first of each are equal."""
    space = environment.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    goal = parts.get(DESIRED)
    if not isinstance(goal, spaces.Box) or not isinstance(parts.get(ACHIEVED), spaces.Box):
        raise UnsuitableBuffer(
            f"{_name(environment)} does not observe '{ACHIEVED}' and '{DESIRED}' as Box spaces. "
            f"Use an environment with goals, without environment.flatten_obs, or set buffer.type=uniform."
        )
    goal.seed(0)
    desired = np.stack([goal.sample() for _ in range(_PROBES)]).astype(np.float32)
    achieved = np.concatenate([desired[:1], desired[:-1]])
    return achieved, desired


def _require_batches(name: str, function: Callable[[Array, Array], Array], achieved: Array, desired: Array) -> None:
    """Refuse a function whose result for a batch differs from its results row by row."""
    try:
        together = function(achieved, desired)
        alone = [function(achieved[row : row + 1], desired[row : row + 1]) for row in range(len(desired))]
    except Exception as error:  # user code may raise anything
        raise UnsuitableBuffer(
            f"{name} of the environment fails for a batch of goals and an empty info: {type(error).__name__}: {error}. "
            f"{_ADVICE}"
        ) from error
    if together.shape != (len(desired),) or not np.array_equal(together, np.concatenate(alone), equal_nan=False):
        raise UnsuitableBuffer(
            f"{name} of the environment does not treat the rows of a batch independently: {len(desired)} goals gave "
            f"{together.tolist()}. {_ADVICE}"
        )


def _name(environment: gymnasium.Env[Any, Any]) -> str:
    return environment.spec.id if environment.spec is not None else type(environment.unwrapped).__name__
