"""PPO of CleanRL, 64×64: the script `cleanrl/ppo.py` of its last release, unchanged.

It wants Gym 0.21, which no present Python can install. A stand-in for the few names that it uses takes its place.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from systems import Work

_ROLLOUT = 2048


class Cleanrl:
    """Trains in the loop of the library."""

    def __init__(self, work: Work, seed: int) -> None:
        self._seed, self._steps = seed, 0

    def train(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Train until the environment ends it."""
        sys.modules["gym"] = _stand_in(lambda: _OldVector(environment, self._count))
        sys.modules["torch.utils.tensorboard"] = _module("torch.utils.tensorboard", SummaryWriter=_NoWriter)
        options = {"seed": self._seed, "total-timesteps": 10**9, "num-envs": 1, "num-steps": _ROLLOUT}
        options |= {"num-minibatches": 32, "update-epochs": 10, "learning-rate": 3e-4, "ent-coef": 0.0}
        options |= {"anneal-lr": False, "cuda": False}
        sys.argv = ["ppo.py", *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
        runpy.run_module("cleanrl.ppo", run_name="__main__")

    def _count(self) -> None:
        self._steps += 1

    def done(self) -> dict[str, Any]:
        """What it did. An update follows when the first decision after a rollout is asked for."""
        updates = max(0, self._steps - 1) // _ROLLOUT
        return {"updates": updates, "used": updates * _ROLLOUT}


class _OldVector:
    """One environment with the interface of Gym 0.21: `reset` returns observations, `step` four values."""

    def __init__(self, environment: gymnasium.Env[Any, Any], count: Callable[[], None]) -> None:
        self._environment, self._count = environment, count
        self.single_observation_space, self.single_action_space = (
            environment.observation_space,
            environment.action_space,
        )

    def reset(self) -> Any:
        """The first observations."""
        return self._environment.reset()[0][None]

    def step(self, actions: Any) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Observations of the next episode where one has ended, as that release did."""
        self._count()
        observation, reward, terminated, truncated, _ = self._environment.step(actions[0])
        over = terminated or truncated
        if over:
            observation = self._environment.reset()[0]
        return observation[None], np.array([reward]), np.array([over]), [{}]

    def close(self) -> None:
        """Do nothing: the loop ends it."""


class _NoWriter:
    """Takes what the script logs, and writes nothing."""

    def __init__(self, place: str) -> None:
        self.place = place

    def add_text(self, name: str, text: str) -> None:
        """Do nothing."""

    def add_scalar(self, name: str, value: Any, step: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _stand_in(make: Callable[[], _OldVector]) -> ModuleType:
    def vector(makers: Sequence[Any]) -> _OldVector:
        return make()

    return _module("gym", vector=SimpleNamespace(SyncVectorEnv=vector), spaces=spaces)


def _module(name: str, **contents: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(contents)
    return module
