"""Grades of exactness: an environment resumes by its own state, or by a replay of its actions."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.wrappers import FlattenObservation, OrderEnforcing, PassiveEnvChecker, TimeLimit

from rl4sys.environments.atari_wrappers import RewardSign
from rl4sys.environments.mujoco_camera import DrawnMujoco
from rl4sys.environments.mujoco_setup import is_mujoco
from rl4sys.environments.mujoco_state import MujocoState
from rl4sys.environments.wrappers import FrameSkip, PixelObservation
from rl4sys.experience import Array
from rl4sys.state import State, generator_state, restore_generator

Environment = gymnasium.Env[Any, Any]
_FORGETFUL = (
    OrderEnforcing,
    PassiveEnvChecker,
    FlattenObservation,
    FrameSkip,
    PixelObservation,
    DrawnMujoco,
    RewardSign,
)
"""Wrappers that carry nothing from one step to the next."""


class Grade(enum.Enum):
    """A grade of exactness; its value explains it in a sentence."""

    E0 = "The environment saves and restores its own state, so a resumed run is exact."
    E1 = "The environment is deterministic, so replaying the running episode makes a resumed run exact."
    E2 = "The environment is deterministic only when new, so every episode gets a new one, to be replayed."
    E3 = "The environment cannot be replayed, so a resumed run starts fresh episodes."
    E4 = "The environment is a live system, so only the learner is exact, over its log."

    @property
    def replays(self) -> bool:
        """Whether a lane is brought back by repeating the actions of its running episode."""
        return self in (Grade.E1, Grade.E2)


@runtime_checkable
class Restorable(Protocol):
    """What an environment (or a wrapper with memory) implements to be saved: plain values and arrays."""

    def get_state(self) -> State:
        """Everything that decides the future, except `np_random`, which is saved for you."""

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned, in this or another instance."""


class ReplayMismatch(Exception):
    """A replayed episode differs from the saved one."""


class _Elapsed:
    """How much of its time limit an episode has used."""

    def __init__(self, limit: TimeLimit[Any, Any]) -> None:
        self._limit = limit

    def get_state(self) -> State:
        return {"elapsed": self._limit._elapsed_steps}

    def set_state(self, state: State) -> None:
        self._limit._elapsed_steps = state["elapsed"]


def saves_itself(environment: Environment) -> bool:
    """Whether the environment and each of its wrappers can be saved directly."""
    return all(isinstance(layer, _FORGETFUL) or _saved_part(layer) is not None for layer in _layers(environment))


def environment_state(environment: Environment) -> State:
    """The state of an environment that `saves_itself`, wrappers and generator included."""
    layers = {depth: part.get_state() for depth, part in _saved_parts(environment)}
    return {"layers": layers, "generator": generator_state(environment.unwrapped.np_random)}


def restore_environment(environment: Environment, state: Any) -> None:
    """Put a new environment where `environment_state` found the old one."""
    environment.reset()
    for depth, part in _saved_parts(environment):
        part.set_state(state["layers"][depth])
    restore_generator(environment.unwrapped.np_random, state["generator"])


def replay(environment: Environment, origin: State, actions: Sequence[Any]) -> tuple[Any, Any, float]:
    """Play an episode again in a new environment, from the generator's state before its reset.

    Returns the last observation, its info and the return so far, to be compared with what was saved.
    """
    restore_generator(environment.unwrapped.np_random, origin)
    observation, info = environment.reset()
    total = 0.0
    for step, action in enumerate(actions, start=1):
        observation, reward, terminated, truncated, info = environment.step(action)
        total += float(reward)
        if terminated or truncated:
            raise ReplayMismatch(f"the replayed episode ended at step {step} of {len(actions)}")
    return observation, info, total


def same(one: Any, other: Any) -> bool:
    """Whether two states are equal to the bit (NaN equals NaN)."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


class ActionLog:
    """The actions of the running episodes, noted once per step for all lanes together."""

    def __init__(self) -> None:
        self._batches: list[Array] = []

    def append(self, action: Array) -> None:
        """Note one step."""
        self._batches.append(action.copy())

    def last(self, length: int, lane: int) -> Array:
        """The newest `length` actions of a lane, [length, …]."""
        rows = [batch[lane] for batch in self._batches[len(self._batches) - length :]]
        return np.stack(rows) if rows else np.zeros(0, np.int64)

    def trim(self, longest: int) -> None:
        """Forget what is older than the longest running episode, rarely enough to cost little."""
        surplus = len(self._batches) - longest
        if surplus > longest + 1024:
            del self._batches[:surplus]

    def refill(self, actions: Sequence[Array]) -> None:
        """Start from saved actions, one array per lane, aligned at their newest step."""
        longest = max(actions, key=len)
        block = np.zeros((len(longest), len(actions), *longest.shape[1:]), longest.dtype)
        for lane, rows in enumerate(actions):
            if len(rows):
                block[len(longest) - len(rows) :, lane] = rows
        self._batches = list(block)


def _layers(environment: Environment) -> Iterator[Environment]:
    while isinstance(environment, gymnasium.Wrapper):
        yield environment
        environment = environment.env
    yield environment


def _saved_parts(environment: Environment) -> Iterator[tuple[str, Restorable]]:
    """What is saved of an environment, each with the depth at which it lies."""
    for depth, layer in enumerate(_layers(environment)):
        part = _saved_part(layer)
        if part is not None:
            yield str(depth), part


def _saved_part(layer: Environment) -> Restorable | None:
    """What saves a layer: a part of ours for what others made, or the layer itself."""
    if isinstance(layer, TimeLimit):
        return _Elapsed(layer)
    if isinstance(layer, Restorable):
        return layer
    if is_mujoco(layer):
        simulated: Any = layer
        return MujocoState(simulated.model, simulated.data)
    return None
