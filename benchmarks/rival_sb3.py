"""Trains with stable-baselines3 and prints its steps per second as JSON. Runs in the rival's own venv."""

from __future__ import annotations

import json
import sys
import time

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env


class Stopwatch(BaseCallback):
    """Starts the clock once the warm-up is over, so that imports and first calls do not count."""

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
    if job["algorithm"] == "ppo":
        environment = make_vec_env(job["environment"], n_envs=8, seed=0)
        model = PPO(
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
        model = DQN(
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
