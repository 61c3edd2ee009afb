"""PPO of RL4Sys in a loop of its own: a local run, without a server."""

from __future__ import annotations

import tempfile
from typing import Any

import gymnasium
from systems import Work

from rl4sys.experiments import Run, load_experiment

_NAME, _ROLLOUT = "SideBySide-v0", 2048
_VECTOR: dict[str, Any] = {
    "algorithm": {"name": "ppo"},
    "network": {"actor": {"hidden_dims": [64, 64]}, "critic": {"hidden_dims": [64, 64]}},
    "environment": {"name": _NAME, "num_envs": 1},
}
_ROWS: dict[str, Any] = {
    "algorithm": {"name": "ppo", "lr": 1e-3, "gamma": 1.0, "gae_lambda": 0.97, "minibatch_size": 512},
    "network": {"actor": {"type": "candidates", "hidden_dims": [32, 16], "activation": "relu"}},
    "environment": {"name": _NAME, "num_envs": 1},
}


class Rl4sysLoop:
    """Trains in the loop of the library."""

    def __init__(self, work: Work, seed: int) -> None:
        self._kind, self._seed = _ROWS if work.has_rows else _VECTOR, seed

    def train(self, environment: gymnasium.Env[Any, Any]) -> None:
        """Train until the environment ends it."""
        gymnasium.register(_NAME, lambda: environment, disable_env_checker=True)
        with tempfile.TemporaryDirectory(prefix="rl4sys-side-by-side-") as place:
            config = load_experiment(
                self._kind
                | {
                    "buffer": {"size": _ROLLOUT},
                    "training": {"total_timesteps": 10**9, "eval_frequency": 0},
                    "experiment": {"seed": self._seed, "directory": place, "threads": 1},
                    "logging": {"tensorboard": False},
                }
            )
            with Run.create(config) as run:
                self._learner = run.learner
                while True:
                    run.step()

    def done(self) -> dict[str, Any]:
        """What it did."""
        return {"updates": self._learner.updates, "used": self._learner.updates * _ROLLOUT}
