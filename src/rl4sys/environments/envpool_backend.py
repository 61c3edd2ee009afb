"""EnvPool (optional): many environments stepped by C++ threads."""

from __future__ import annotations

import importlib
from typing import Any

from rl4sys.environments.making import MissingDependency
from rl4sys.environments.names import UnknownEnvironment
from rl4sys.environments.vector import VectorAdapter
from rl4sys.seeding import Seeds


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
