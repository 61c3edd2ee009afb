"""Trains PPO of stable-baselines3 on an Atari game and prints its steps per second as JSON.

Runs in a separate venv with ale-py.
"""

from __future__ import annotations

import json
import sys
import time

import ale_py  # noqa: F401
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack

from rival_sb3 import Stopwatch


class CpuStopwatch(Stopwatch):
    """Notes the CPU seconds at the start of the clock too."""

    spent = 0.0

    def _on_step(self) -> bool:
        if self.began is None:
            self.spent = time.process_time()
        return super()._on_step()


def main() -> None:
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["threads"])
    environment = VecFrameStack(make_atari_env(f"{job['game']}NoFrameskip-v4", n_envs=8, seed=0), 4)
    model = stable_baselines3.PPO(
        "CnnPolicy",
        environment,
        n_steps=128,
        batch_size=256,
        n_epochs=4,
        learning_rate=2.5e-4,
        clip_range=0.1,
        ent_coef=0.01,
        device="cpu",
        # A network for the policy and one for the critic, as ours.
        policy_kwargs={"share_features_extractor": False, "normalize_images": True},
    )
    # Past the warm-up, not at its end: there the update of its steps is still to come.
    watch = CpuStopwatch(job["warmup"] + 1)
    model.learn(job["total"] + job["warmup"], callback=watch)
    assert watch.began is not None
    began, steps = watch.began
    trained = model.num_timesteps - steps
    speed, cpu_speed = trained / (time.perf_counter() - began), trained / (time.process_time() - watch.spent)
    print(json.dumps({"steps_per_second": speed, "steps_per_cpu_second": cpu_speed}))


if __name__ == "__main__":
    main()
