"""Trains with stable-baselines3, or with its JAX version sbx, and prints its steps per second as JSON.

Runs in a separate venv with both; recurrent PPO is sb3-contrib's.
"""

from __future__ import annotations

import importlib
import json
import sys
import time

import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env


class Stopwatch(BaseCallback):
    """Starts the clock after the warm-up, so that imports and first calls do not count."""

    def __init__(self, warmup: int) -> None:
        super().__init__()
        self.warmup = warmup
        self.began: tuple[float, int] | None = None

    def _on_step(self) -> bool:
        if self.began is None and self.num_timesteps >= self.warmup:
            self.began = (time.perf_counter(), self.num_timesteps)
        return True


def main() -> None:
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    if job["algorithm"] in ("sac", "td3", "ddpg"):
        environment = make_vec_env(job["environment"], n_envs=1, seed=0)
        library = importlib.import_module("sbx" if job["rival"] == "sbx" else "stable_baselines3")
        model = getattr(library, job["algorithm"].upper())(
            "MlpPolicy",
            environment,
            train_freq=1,
            gradient_steps=1,
            batch_size=256,
            buffer_size=100_000,
            learning_starts=500,
            device="cpu" if job["rival"] == "sb3" else "auto",
            policy_kwargs={"net_arch": [256, 256]},
        )
    elif job["algorithm"] == "recurrent_ppo":
        contrib = importlib.import_module("sb3_contrib")
        model = contrib.RecurrentPPO(
            "MlpLstmPolicy",
            make_vec_env(job["environment"], n_envs=8, seed=0),
            n_steps=job["steps"],
            batch_size=256,
            n_epochs=job["epochs"],
            device="cpu",
            policy_kwargs={"lstm_hidden_size": 64, "net_arch": []},
        )
    elif job["algorithm"] == "ppo":
        environment = make_vec_env(job["environment"], n_envs=8, seed=0)
        model = stable_baselines3.PPO(
            "MlpPolicy",
            environment,
            n_steps=job["steps"],
            batch_size=256,
            n_epochs=job["epochs"],
            device="cpu",
            policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh},
        )
    else:
        environment = make_vec_env(job["environment"], n_envs=1, seed=0)
        model = stable_baselines3.DQN(
            "MlpPolicy",
            environment,
            train_freq=4,
            gradient_steps=1,
            batch_size=128,
            buffer_size=100_000,
            learning_starts=1_000,
            device="cpu",
            policy_kwargs={"net_arch": [256, 256]},
        )
    watch = Stopwatch(job["warmup"])
    model.learn(job["total"] + job["warmup"], callback=watch)
    assert watch.began is not None
    began, steps = watch.began
    speed = (model.num_timesteps - steps) / (time.perf_counter() - began)
    print(json.dumps({"steps_per_second": speed}))


if __name__ == "__main__":
    main()
