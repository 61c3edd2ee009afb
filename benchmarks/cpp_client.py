"""Cost of a decision with the C++ client, compared with the Python client and a bare loop, while a server trains.

Run `make cpp` and `python benchmarks/cpp_client.py`. The clients run one after the other, each with its own server and
learner (PPO, 8→64→64→4): they act, record actions and rewards, and receive new versions. The Python client runs
policies with numpy alone unless `--runtime` says otherwise; the table and the JSON name what it ran them with.

- act: microseconds of `episode.act`, with about 20 µs of computation between two decisions; in C++ also the
  allocations of the acting thread after the warm-up;
- loop: time of a computation of about 100 µs, as a share of the same with a decision after it, in alternating blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy as np

import rl4sys
from rl4sys.client import Agent
from serving import serving

ROOT = Path(__file__).parents[1]
BUILD = Path(os.environ.get("RL4SYS_CPP_BUILD", ROOT / "cpp" / "build" / "release"))
TARGETS = {"median_us": "≤ 3", "p99_us": "≤ 20", "max_us": "", "allocations": "0", "loop_ratio": "≥ 0.97"}
NAMES = {
    "median_us": "act: median µs",
    "p99_us": "act: p99 µs",
    "max_us": "act: max µs",
    "allocations": "act: allocations",
    "loop_us": "loop: computation µs",
    "loop_ratio": "loop: share of bare speed",
    "versions": "versions received",
    "drops": "reasons for drops",
}


def in_cpp(decisions: int) -> dict[str, Any]:
    program = BUILD / "benchmarks" / "rl4sys_act_benchmark"
    if not program.is_file():
        raise SystemExit(f"{program} is missing. Run `make cpp` first.")
    with serving() as server:
        command = [str(program), server.address, str(decisions)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def in_python(decisions: int, runtime: str) -> dict[str, Any]:
    with serving() as server:
        settings = {
            "client_id": "python-benchmark",
            "server": server.address,
            "algorithm": {"name": "ppo"},
            "network": {"actor": {"hidden_dims": [64, 64]}},
            "observation": 8,
            "action": 4,
            "timeout": 60,
            "runtime": runtime,
        }
        with rl4sys.connect(settings) as agent:
            first = agent.health().version or 0
            results = _act(agent, decisions) | _loop(agent, decisions // 4)
            health = agent.health()
            counts = {"versions": (health.version or 0) - first, "drops": len(health.drops)}
            return results | counts | {"runtime": health.runtime}


def _act(agent: Agent, decisions: int) -> dict[str, Any]:
    gap, decide = _work_of(20e-6), _decider(agent)
    times = []
    for step in range(decisions // 10 + decisions):
        gap()
        taken = decide()
        if step >= decisions // 10:
            times.append(taken / 1000)
    return {"median_us": np.median(times), "p99_us": np.percentile(times, 99), "max_us": max(times)}


def _loop(agent: Agent, decisions: int, block: int = 100) -> dict[str, Any]:
    work, decide = _work_of(100e-6), _decider(agent)
    bare, ratios = [], []
    for _ in range(max(1, decisions // block)):
        begin = perf_counter()
        for _ in range(block):
            work()
        middle = perf_counter()
        for _ in range(block):
            work()
            decide()
        alone, together = middle - begin, perf_counter() - middle
        bare.append(alone / block * 1e6)
        ratios.append(alone / together)
    return {"loop_us": statistics.median(bare), "loop_ratio": statistics.median(ratios)}


def _decider(agent: Agent) -> Callable[[], int]:
    """A function that acts and rewards in an endless episode and returns the nanoseconds of `act` alone."""
    episode = agent.episode()
    rows = [np.eye(4, 8, dtype=np.float32)[right] for right in range(4)]
    steps = 0

    def decide() -> int:
        nonlocal steps
        steps += 1
        right = steps % 4
        begin = perf_counter_ns()
        action = episode.act(rows[right])
        taken = perf_counter_ns() - begin
        episode.reward(1.0 if action == right else 0.0)
        return taken

    return decide


def _work_of(seconds: float) -> Callable[[], int]:
    # The fastest of several: other processes slow down the rest.
    quickest = min(_seconds_of(lambda: sum(range(100_000))) for _ in range(20))
    count = int(100_000 * seconds / quickest)
    return lambda: sum(range(count))


def _seconds_of(work: Callable[[], int]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=200_000, help="decisions of each client")
    parser.add_argument("--runtime", choices=("numpy", "native", "auto"), default="numpy", help="of the Python client")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    results = {"C++": in_cpp(options.decisions), "Python": in_python(options.decisions, options.runtime)}
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{'':30}{'C++':>12}{'Python':>12}{'target (C++)':>16}   Python: {results['Python']['runtime']}")
    for key, name in NAMES.items():
        shown = [f"{results[client][key]:.6g}" if key in results[client] else "" for client in ("C++", "Python")]
        print(f"{name:30}{shown[0]:>12}{shown[1]:>12}{TARGETS.get(key, ''):>16}")


if __name__ == "__main__":
    main()
