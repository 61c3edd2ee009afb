"""Cost of a checkpoint: at most 50 ms for PPO, and only the new rows for DQN with a million transitions.

.venv/bin/python benchmarks/checkpoint.py [--json]
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from rl4sys.experience import Ending, Segment, StreamKey
from rl4sys.experiments import Run, load_experiment

LIMIT_MS = 50.0
NEW_ROWS = 10_000


def fsync_ms(directory: Path) -> float:
    """The median time of an fsync of 4 KiB on this disk, as the unit for the other numbers."""
    times = []
    with (directory / "probe").open("wb") as file:
        for _ in range(30):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began)
    return 1_000 * statistics.median(times)


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def measure(run: Run, rounds: int = 15) -> list[float]:
    """Milliseconds of several checkpoints, with a training step before each."""
    times = []
    for _ in range(rounds):
        run.step()
        began = time.perf_counter()
        run.save()
        times.append(1_000 * (time.perf_counter() - began))
    return times


def ppo(directory: Path) -> dict:
    config = load_experiment("ppo_LunarLander-v3.yaml", {"directory": str(directory), "threads": 1})
    with Run.create(config) as run:
        times = measure(run)
        newest = run.directory.checkpoints / f"{run.steps:012d}"
        return {"median_ms": statistics.median(times), "max_ms": max(times), "bytes": size(newest)}


def fill(run: Run, rows: int) -> None:
    """Add synthetic steps to the buffer."""
    rng = np.random.default_rng(0)
    steps = 10_000
    for start in range(0, rows, steps):
        observation = {"observation": rng.normal(size=(steps + 1, 8)).astype(np.float32)}
        action, reward = rng.integers(4, size=steps), rng.normal(size=steps).astype(np.float32)
        stream = StreamKey("local", "agent", 0)
        segment = Segment(stream, start, 0, 0, Ending.TERMINATED, observation, action, reward, {}, {})
        run.learner.buffer.add(segment, 0)


def dqn(directory: Path, buffer: str) -> dict:
    overrides = {
        "directory": str(directory),
        "threads": 1,
        "buffer": {"type": buffer, "size": 1_000_000},
        "algorithm.learning_starts": 10_000_000,
    }
    with Run.create(load_experiment("dqn_LunarLander-v3.yaml", overrides)) as run:
        fill(run, 1_000_000)
        began = time.perf_counter()
        run.save()
        first = 1_000 * (time.perf_counter() - began)
        replay = run.directory.path / "replay"
        before = size(replay)
        run.step()
        fill(run, NEW_ROWS)
        began = time.perf_counter()
        run.save()
        later = 1_000 * (time.perf_counter() - began)
        return {"first_ms": first, "first_bytes": before, "next_ms": later, "next_bytes": size(replay) - before}


def main() -> None:
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        directory = Path(name)
        results = {
            "fsync_ms": fsync_ms(directory),
            "ppo": ppo(directory),
            "dqn_uniform": dqn(directory, "uniform"),
            "dqn_prioritized": dqn(directory, "prioritized"),
        }
    if "--json" in sys.argv:
        print(json.dumps(results, indent=1))
        return
    print(f"one fsync of 4 KiB        {results['fsync_ms']:8.2f} ms")
    cost = results["ppo"]
    verdict = "met" if cost["median_ms"] <= LIMIT_MS else "MISSED"
    limit = f"≤ {LIMIT_MS:.0f}: {verdict}"
    print(f"PPO LunarLander, median   {cost['median_ms']:8.1f} ms   ({limit}; {cost['bytes']:,} bytes)")
    for kind in ("uniform", "prioritized"):
        cost = results[f"dqn_{kind}"]
        print(f"DQN 1M {kind:<11}, first {cost['first_ms']:8.0f} ms   ({cost['first_bytes']:,} bytes of rows)")
        print(f"  then {NEW_ROWS:,} new rows    {cost['next_ms']:8.1f} ms   ({cost['next_bytes']:,} bytes of rows)")


if __name__ == "__main__":
    main()
