"""Four trials of a sweep with two jobs take at most 0.6 of the time that they take with one.

.venv/bin/python benchmarks/sweep.py [--json] [--steps 60000] [--rounds 2]

Needs two cores that no other process uses.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 0.6
SWEEP = {
    "base_config": "ppo_cartpole.yaml",
    "sweep": {"algorithm.lr": [1e-4, 3e-4, 1e-3, 3e-3]},
}


def seconds(steps: int, jobs: int) -> float:
    """Seconds of the whole command, in an empty directory."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "sweep.json").write_text(json.dumps(SWEEP))
        command = [sys.executable, "-m", "rl4sys.cli", "sweep", "sweep.json", "--jobs", str(jobs)]
        began = time.perf_counter()
        subprocess.run(
            [*command, f"training.total_timesteps={steps}", "logging.tensorboard=false"],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--steps", type=int, default=60_000, help="steps of each trial")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(options.rounds):
        for jobs, measured in times.items():
            # Alternating, so that other processes slow down both.
            measured.append(seconds(options.steps, jobs))
    one, two = (statistics.median(measured) for measured in times.values())
    cores = len(os.sched_getaffinity(0))
    if options.json:
        print(json.dumps({"one_job_s": one, "two_jobs_s": two, "ratio": two / one, "cores": cores}, indent=1))
        return
    verdict = "met" if two <= LIMIT * one else "MISSED"
    print(f"4 trials of {options.steps:,} PPO CartPole steps on {cores} cores")
    print(f"1 job    {one:8.1f} s")
    print(f"2 jobs   {two:8.1f} s   ({two / one:.2f} of 1 job; ≤ {LIMIT}: {verdict})")


if __name__ == "__main__":
    main()
