"""Ranks: PPO on images with two ranks, compared with one process; every process has one thread.

Both sides train the same config in turns, in one run of this program; the result is the ratio of the medians of steps
per second after the first update. One process with two threads is shown beside it: what the second core gives without
ranks. Numbers mean something only on a machine with a free core for each rank.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GAME = "Pong"
TARGET = 1.5
"""The lowest acceptable ratio."""
SIDES = {"1 rank": (1, 1), "1 rank, 2 threads": (1, 2), "2 ranks": (2, 1)}
"""Ranks, and threads of each."""


def steps_per_second(ranks: int, threads: int, updates: int) -> float:
    """Train, and return the speed from the first record to the last."""
    with tempfile.TemporaryDirectory() as directory:
        settings = [
            f"experiment.directory={directory}",
            f"experiment.threads={threads}",
            f"training.ranks={ranks}",
            f"training.total_timesteps={1024 * (updates + 1)}",
            "training.log_frequency=1024",
            "training.eval_frequency=0",
            "training.num_eval_episodes=1",
            "environment.max_frames=400",
            "logging.tensorboard=false",
            "logging.terminal=false",
        ]
        command = [sys.executable, "-m", "rl4sys.cli", "train", f"ppo_atari-{GAME}.yaml", *settings]
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        (metrics,) = Path(directory).glob("*/metrics.jsonl")
        records = [json.loads(line) for line in metrics.read_text().splitlines()]
        timed = {record["step"]: record["timing"]["seconds"] for record in reversed(records)}
        first, last = min(timed), max(timed)
        return (last - first) / (timed[last] - timed[first])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=3, help="updates of 1,024 steps in each round of each side")
    arguments = parser.parse_args()
    speeds: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(arguments.rounds):
        for name, (ranks, threads) in SIDES.items():
            speeds[name].append(steps_per_second(ranks, threads, arguments.updates))
    medians = {name: statistics.median(each) for name, each in speeds.items()}
    ratios = {name: median / medians["1 rank"] for name, median in medians.items()}
    for name, median in medians.items():
        print(f"PPO on {GAME}, {name:18s} {median:7.1f} steps per second: {ratios[name]:.2f} times")
    print(f"2 ranks: {ratios['2 ranks']:.2f} times of 1 (at least {TARGET})")
    if ratios["2 ranks"] < TARGET:
        raise SystemExit("Below its target: 2 ranks")


if __name__ == "__main__":
    main()
