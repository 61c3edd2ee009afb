"""The goal reward of an environment: its own functions, asked about goals that were not its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.environments.wrappers import FrameSkip
from rl4sys.experience import Array
from rl4sys.replay import ACHIEVED, DESIRED, UnsuitableBuffer

_ADVICE = "Correct the environment, or set buffer.goal_reward={type: distance, threshold: …} to what it does."
_PROBES = 4

Judge = Callable[[Array, Array, dict[str, Any]], Any]


class EnvironmentGoals:
    """`compute_reward` and, if there is one, `compute_terminated` of an environment, for whole batches."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Keeps the environment, whose state does not matter, and tries its functions out."""
        _require_single_steps(environment)
        # The functions belong to it: it must not be closed while they are used.
        self._environment = environment
        self._reward: Judge = _function(environment, "compute_reward")
        self._terminated: Judge | None = None
        if environment.has_wrapper_attr("compute_terminated"):
            self._terminated = _function(environment, "compute_terminated")
        achieved, desired = _some_goals(environment)
        _require_batches("compute_reward", self.reward, achieved, desired)
        if self._terminated is not None:
            _require_batches("compute_terminated", self._is_over, achieved, desired)

    def reward(self, achieved: Array, desired: Array) -> Array:
        """The rewards [B]."""
        return np.asarray(self._reward(achieved, desired, {}), np.float32)

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Whether reaching the goal ends the episode [B]."""
        return None if self._terminated is None else self._is_over(achieved, desired)

    def _is_over(self, achieved: Array, desired: Array) -> Array:
        assert self._terminated is not None
        # Some say a plain False for all.
        return np.broadcast_to(np.asarray(self._terminated(achieved, desired, {}), bool), (len(achieved),))


def _require_single_steps(environment: gymnasium.Env[Any, Any]) -> None:
    """Refuse rewards that are sums: where the steps in between led is not known afterwards."""
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, FrameSkip):
            raise UnsuitableBuffer(
                "With environment.frame_skip a reward is the sum of several steps, which compute_reward cannot tell "
                "for another goal. Set environment.frame_skip=1, or buffer.type=uniform."
            )
        environment = environment.env


def _function(environment: gymnasium.Env[Any, Any], name: str) -> Judge:
    if not environment.has_wrapper_attr(name):
        raise UnsuitableBuffer(
            f"{_called(environment)} has no function {name}(achieved_goal, desired_goal, info). {_ADVICE}"
        )
    function: Judge = environment.get_wrapper_attr(name)
    return function


def _some_goals(environment: gymnasium.Env[Any, Any]) -> tuple[Array, Array]:
    """Goals [B, …] that were achieved and that are desired; the first of them is the same."""
    space = environment.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {}
    goal = parts.get(DESIRED)
    if not isinstance(goal, spaces.Box) or not isinstance(parts.get(ACHIEVED), spaces.Box):
        raise UnsuitableBuffer(
            f"{_called(environment)} does not show '{ACHIEVED}' and '{DESIRED}' as boxes of numbers. "
            f"Use an environment with goals, without environment.flatten_obs, or set buffer.type=uniform."
        )
    goal.seed(0)
    desired = np.stack([goal.sample() for _ in range(_PROBES)]).astype(np.float32)
    achieved = np.concatenate([desired[:1], desired[:-1]])
    return achieved, desired


def _require_batches(name: str, judge: Callable[[Array, Array], Array], achieved: Array, desired: Array) -> None:
    """Refuse a function that judges a whole batch otherwise than its rows one by one."""
    try:
        together = judge(achieved, desired)
        alone = [judge(achieved[row : row + 1], desired[row : row + 1]) for row in range(len(desired))]
    except Exception as error:  # whatever the function of a stranger raises
        raise UnsuitableBuffer(
            f"{name} of the environment fails for a batch of goals and an empty info: {type(error).__name__}: {error}. "
            f"{_ADVICE}"
        ) from error
    if together.shape != (len(desired),) or not np.array_equal(together, np.concatenate(alone), equal_nan=False):
        raise UnsuitableBuffer(
            f"{name} of the environment does not judge the rows of a batch one by one: {len(desired)} goals gave "
            f"{together.tolist()}. {_ADVICE}"
        )


def _called(environment: gymnasium.Env[Any, Any]) -> str:
    return environment.spec.id if environment.spec is not None else type(environment.unwrapped).__name__
