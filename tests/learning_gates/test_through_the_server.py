"""Learning gate for live learning: LunarLander through a real server, compared with the same PPO in a local run.

Both count the environment steps until the mean return of the last 100 training episodes reaches 200.
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import rl4sys
from rl4sys.experiments import MetricRecord, Run, load_experiment

SOLVED = 200.0
EPISODES = 100
MAX_STEPS = 1_000_000
LANES = 16
ALGORITHM = {
    "lr": 1e-3,
    "anneal_lr": False,
    "gamma": 0.999,
    "gae_lambda": 0.98,
    "epochs": 6,
    "minibatch_size": 256,
    "entropy_coef": 0.01,
}
BUFFER = 4_096


@pytest.mark.learning
def test_lunar_lander_through_the_server_needs_at_most_one_and_a_half_times_the_steps(tmp_path: Path) -> None:
    seeds = (1, 2, 3)
    local = [steps_locally(seed, tmp_path / "local") for seed in seeds]
    remote = [steps_through_the_server(seed, tmp_path / f"remote-{seed}") for seed in seeds]
    print(f"\nsteps to a mean return of {SOLVED:g}: local {local}, through the server {remote}")
    assert max(*local, *remote) < MAX_STEPS
    assert sum(remote) <= 1.5 * sum(local)


def steps_locally(seed: int, directory: Path) -> int:
    overrides: dict[str, Any] = {f"algorithm.{name}": value for name, value in ALGORITHM.items()}
    overrides |= {
        "seed": seed,
        "directory": str(directory),
        "environment.num_envs": LANES,
        "buffer.size": BUFFER,
        "training.total_timesteps": MAX_STEPS,
        "training.log_frequency": BUFFER,
        "training.eval_frequency": 0,
        "training.checkpoint_frequency": MAX_STEPS,
        "logging.tensorboard": False,
    }
    watch = Watch()
    run = Run.create(load_experiment("demo_lunar_lander.yaml", overrides))
    run.train([watch], stop=lambda: watch.solved)
    return run.steps


class Watch:
    """A logger that notices when the mean return is high enough."""

    solved = False

    def log(self, record: MetricRecord) -> None:
        self.solved = record.metrics.get("rollout/return", -1e9) >= SOLVED

    def close(self) -> None:
        """Nothing to close."""


def steps_through_the_server(seed: int, directory: Path) -> int:
    with serving(directory) as address:
        settings = {
            "client_id": "lander",
            "server": address,
            "algorithm": {"name": "PPO", **ALGORITHM},
            "buffer": {"size": BUFFER},
            "observation": 8,
            "action": 4,
            "seed": seed,
            "reward_window": 0,
            "timeout": 60.0,
        }
        with rl4sys.connect(settings) as agent:
            return fly(agent, seed)


def fly(agent: rl4sys.Agent, seed: int) -> int:
    environments = [gymnasium.make("LunarLander-v3", disable_env_checker=True) for _ in range(LANES)]
    observations = [env.reset(seed=seed * LANES + lane)[0] for lane, env in enumerate(environments)]
    episodes = [agent.episode() for _ in environments]
    totals = [0.0] * LANES
    recent: deque[float] = deque(maxlen=EPISODES)
    steps = 0
    while steps < MAX_STEPS:
        for lane, env in enumerate(environments):
            action = episodes[lane].act(observations[lane])
            observations[lane], reward, terminated, truncated, _ = env.step(action)
            episodes[lane].reward(float(reward))
            totals[lane] += float(reward)
            steps += 1
            if terminated or truncated:
                ending = rl4sys.Ending.TERMINATED if terminated else rl4sys.Ending.TRUNCATED
                episodes[lane].end(observations[lane], ending)
                recent.append(totals[lane])
                totals[lane] = 0.0
                observations[lane], _ = env.reset()
                episodes[lane] = agent.episode()
        if len(recent) == EPISODES and sum(recent) / EPISODES >= SOLVED:
            break
    return steps


@contextmanager
def serving(data: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "rl4sys.server", "--listen", "127.0.0.1:0", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{int(process.stdout.readline().split()[1])}"
        finally:
            process.terminate()
