"""Vector environments of others, EnvPool among them, seen as lanes, whichever way they reset."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rl4sys.environments.episode_info import VectorInfo
from rl4sys.environments.episodes import EpisodeStatistics, EpisodeSummary, Step
from rl4sys.environments.exactness import Grade
from rl4sys.environments.making import MissingDependency
from rl4sys.environments.names import UnknownEnvironment
from rl4sys.environments.spaces import (
    MASK,
    EnvironmentSpec,
    ObservationConverter,
    action_batch_converter,
    action_mask_spec,
    action_spec,
    flat_mask,
)
from rl4sys.experience import Array, Arrays, Ending
from rl4sys.policy import COUNT
from rl4sys.seeding import Seeds
from rl4sys.state import State, StateMismatch, require


class VectorEnvironment(Protocol):
    """The part of `gymnasium.vector.VectorEnv` that lanes need."""

    num_envs: int
    metadata: dict[str, Any]
    single_observation_space: Any
    single_action_space: Any

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes; with options["reset_mask"] only in some lanes."""

    def step(self, actions: Any, /) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Act in all lanes."""

    def close(self) -> None:
        """Release everything."""


class VectorAdapter:
    """Lanes over a `gymnasium.vector.VectorEnv` of any autoreset mode, with the interface of `Lanes`.

    With next-step autoreset the call after an episode's end is spent on the reset: that lane has `acted`
    false, its action is ignored, and until then its observation is the final one.
    What runs inside cannot be saved.
    """

    grade = Grade.E3
    inexact: list[str]
    """Why lanes did not resume exactly at the last `restore`."""
    restarted: list[int]
    """The lanes that began a new episode at the last `restore`: all of them."""

    def __init__(self, vector: VectorEnvironment, seeds: Seeds) -> None:
        self.count = vector.num_envs
        self.inexact, self.restarted = [], []
        self._vector, self._seeds = vector, seeds
        self._mode = _autoreset_mode(vector)
        self._commands = action_batch_converter(vector.single_action_space)
        action = action_spec(vector.single_action_space)
        observation, info = vector.reset(seed=self._first_seeds())
        mask = action_mask_spec(action) if MASK in info else None
        self._masks = np.ones((self.count, *(() if mask is None else mask.shape)), bool)
        self._observe = ObservationConverter(vector.single_observation_space, mask, action)
        self.spec = EnvironmentSpec(self._observe.specs, action)
        self.observation: Arrays = self._observe.empty(self.count)
        """What to act on now, one row per lane."""
        self._statistics, self._info = EpisodeStatistics(self.count), VectorInfo(self.count)
        self._ending = np.zeros(self.count, np.uint8)
        self._pending = np.zeros(self.count, bool)
        self._is_new = True
        self._show(observation, info)

    def reset(self) -> Arrays:
        """Begin an episode in every lane, dropping those that run; the first observations."""
        if not self._is_new:
            self._begin(*self._vector.reset())
        self._is_new = False
        return self.observation

    def step(self, action: Array) -> Step:
        """Act once in every lane: int64 [N] or [N, k] choices from 0, or float32 [N, d], clipped here."""
        observation, reward, terminated, truncated, info = self._vector.step(self._commands(action))
        acted = ~self._pending
        reward = np.where(acted, reward, 0.0)
        self._ending[:] = np.where(terminated, Ending.TERMINATED, np.where(truncated, Ending.TRUNCATED, 0)) * acted
        self._count(reward, acted)
        if info:
            self._note_info(info, acted)
        self._show(observation, info)
        final = {lane: self._end(lane, info) for lane in np.flatnonzero(self._ending).tolist()}
        if self._mode is AutoresetMode.NEXT_STEP:
            self._pending[:] = self._ending != 0
            if MASK in self.observation:
                # The next action of these lanes is ignored, so that any may be chosen.
                self.observation[MASK][self._pending] = True
            if COUNT in self.observation:
                np.maximum(self.observation[COUNT], 1.0, out=self.observation[COUNT], where=self._pending[:, None])
        elif self._mode is AutoresetMode.DISABLED and final:
            self._show(*self._vector.reset(options={"reset_mask": self._ending != 0}))
        return Step(self.observation, reward.astype(np.float32), self._ending, final, None if acted.all() else acted)

    def episodes(self) -> list[EpisodeSummary]:
        """The episodes finished since the last call, oldest first."""
        return self._statistics.drain()

    def close(self) -> None:
        """Release what the backend holds."""
        self._vector.close()

    def state(self) -> State:
        """What can be saved: the statistics, and how far the lanes are."""
        return {"count": self.count, "statistics": self._statistics.state()}

    def restore(self, state: Any) -> Arrays:
        """Begin new episodes in all lanes, with seeds that depend on how far the saved ones were."""
        require(state, "count", "statistics")
        if state["count"] != self.count:
            raise StateMismatch(
                f"The saved state has {state['count']} lanes; here are {self.count}. Resume with as many."
            )
        self._statistics.restore(state["statistics"])
        self._begin(*self._vector.reset(seed=self._first_seeds("restored at", self._statistics.clock)))
        self._is_new = False
        self.restarted = list(range(self.count))
        reason = f"continuing, not exact: grade {self.grade.name}. {self.grade.value}"
        self.inexact = [f"lane {lane}: {reason}" for lane in self.restarted]
        return self.observation

    def _first_seeds(self, *occasion: str | int) -> list[int] | int:
        seeds = [self._seeds.integer("environment", lane, *occasion) % 2**31 for lane in range(self.count)]
        vector = self._vector
        if isinstance(vector, VectorEnv) and not isinstance(vector.unwrapped, SyncVectorEnv | AsyncVectorEnv):
            # An environment with a vector implementation of its own has one generator for all lanes.
            return seeds[0]
        return seeds

    def _begin(self, observation: Any, info: dict[str, Any]) -> None:
        self._pending[:] = False
        for lane in range(self.count):
            self._statistics.forget(lane)
            self._info.forget(lane)
        self._show(observation, info)

    def _count(self, reward: Array, acted: Array) -> None:
        self._statistics.clock += 1
        for lane, amount in enumerate(reward.tolist()):
            self._statistics.returns[lane] += amount
        for lane in np.flatnonzero(~acted).tolist():
            self._statistics.forget(lane)

    def _note_info(self, info: dict[str, Any], acted: Array) -> None:
        """Take note of the numbers in `info`; with same-step autoreset those of an ending are apart from the rest."""
        continues = acted & (self._ending == 0)
        if "final_info" not in info:
            self._info.note(info, acted)
            return
        self._info.note(info, continues)
        self._info.note(info["final_info"], acted & ~continues)

    def _show(self, observation: Any, info: dict[str, Any]) -> None:
        if MASK in info:
            # Only the lanes flagged in "_action_mask" have one in this info; the others keep theirs.
            for lane in np.flatnonzero(info[f"_{MASK}"]).tolist():
                self._masks[lane] = flat_mask(info[MASK][lane])
        self._observe.fill_batch(self.observation, observation, self._masks)

    def _end(self, lane: int, info: dict[str, Any]) -> Arrays:
        """Note the end of an episode; the final observation."""
        self._statistics.info.note(lane, self._info.finish(lane))
        self._statistics.finish(lane, Ending(self._ending[lane]), {})
        if self._mode is AutoresetMode.SAME_STEP:
            final_info = info["final_info"]
            masked = {MASK: final_info[MASK][lane]} if MASK in final_info else {}
            return self._observe.single(info["final_obs"][lane], masked)
        return {name: array[lane, ...].copy() for name, array in self.observation.items()}


def _autoreset_mode(vector: VectorEnvironment) -> AutoresetMode:
    if "autoreset_mode" not in vector.metadata:
        raise ValueError(
            f"{vector} does not say how it resets. Set metadata['autoreset_mode'] to one of "
            f"{', '.join(str(mode) for mode in AutoresetMode)}."
        )
    return AutoresetMode(vector.metadata["autoreset_mode"])


class _Pool:
    """An EnvPool that takes seeds at `reset`, like others; by itself it takes one only when it is made."""

    def __init__(self, envpool: Any, name: str, count: int) -> None:
        self._make, self._name = envpool.make, name
        self._pool = self._seeded(count, seed=0)
        self.num_envs = count
        self.metadata = self._pool.metadata
        self.single_observation_space = self._pool.single_observation_space
        self.single_action_space = self._pool.single_action_space

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self._pool.close()
            self._pool = self._seeded(self.num_envs, seed[0])
        observation, info = self._pool.reset()
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._pool.step(actions)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        self._pool.close()

    def _seeded(self, count: int, seed: int) -> Any:
        return self._make(self._name, env_type="gymnasium", num_envs=count, seed=seed)


def envpool_lanes(name: str, count: int, seeds: Seeds) -> VectorAdapter:
    """Lanes of an EnvPool environment. Its pool cannot be saved: grade E3."""
    try:
        envpool = importlib.import_module("envpool")
    except ImportError as error:
        raise MissingDependency(
            f"EnvPool is not installed, so {name} cannot run in it. Install it with: pip install 'rl4sys[envpool]'"
        ) from error
    if name not in envpool.list_all_envs():
        raise UnknownEnvironment(f"EnvPool does not offer '{name}'. `envpool.list_all_envs()` lists what it does.")
    return VectorAdapter(_Pool(envpool, name, count), seeds)
