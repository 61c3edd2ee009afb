"""Ray compared with local processes: a sweep of 4 trials with 60,000 PPO steps, and a turn of two collectors.

Both sides run in turns, in one run of this program: on a cluster that is up, and with one that the command starts. The
fingerprints of all trials must be equal. Collectors take as many steps as those of a pooled source; the difference of
the medians is what asking over Ray costs per turn. Numbers mean something only on a machine without other work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray

WARM, COLD, TURN = 1.10, 1.35, 4.0
"""The highest acceptable ratios of a sweep on Ray, and milliseconds more per turn."""
SWEEP = {
    "base_config": "ppo_cartpole.yaml",
    "sweep": {"algorithm.lr": [1e-3, 3e-4]},
    "seeds": [1, 2],
    "overrides": {"threads": 1, "training.eval_frequency": 0, "logging.tensorboard": False},
}


def sweep_seconds(directory: Path, name: str, steps: int, *options: str) -> float:
    """Run the sweep once; seconds from start to end."""
    (directory / "sweep.yaml").write_text(json.dumps(SWEEP))
    command = [sys.executable, "-m", "rl4sys.cli", "sweep", "sweep.yaml", f"training.total_timesteps={steps}"]
    began = time.perf_counter()
    subprocess.run([*command, "--name", name, *options], cwd=directory, check=True, capture_output=True)
    return time.perf_counter() - began


def fingerprints(directory: Path, name: str) -> list[str]:
    """Those of all trials, in order."""
    results = sorted((directory / "runs" / name).glob("*/*/result.json"))
    return [json.dumps(json.loads(result.read_text())["fingerprint"], sort_keys=True) for result in results]


def compare_sweeps(steps: int, rounds: int) -> None:
    """Time sweeps here, on a cluster that is up, and on one that is started for it."""
    address = ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False).address_info[
        "address"
    ]
    sides = {"here": ("--jobs", "2"), "warm": ("--on", "ray", "--address", address), "cold": ("--on", "ray")}
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        for round_ in range(rounds):
            for side, options in sides.items():
                seconds[side].append(sweep_seconds(directory, f"{side}{round_}", steps, *options))
        equal = sum(
            ours == theirs
            for side in ("warm", "cold")
            for ours, theirs in zip(fingerprints(directory, f"{side}0"), fingerprints(directory, "here0"), strict=True)
        )
    ray.shutdown()
    medians = {side: statistics.median(values) for side, values in seconds.items()}
    print(f"sweep of 4 × {steps:,} PPO steps: {medians['here']:.1f} s here")
    print(f"  cluster up   {medians['warm'] / medians['here']:.2f} of that (target {WARM:.2f})")
    print(f"  cluster cold {medians['cold'] / medians['here']:.2f} of that (target {COLD:.2f})")
    print(f"  equal fingerprints: {equal} of 8")


def turn_milliseconds(collection: str, collectors: int, delay: float, turns: int) -> float:
    """The median time of a turn with an environment that takes `delay` seconds per step."""
    from rl4sys.experiments import Run, load_experiment

    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "slow.py").write_text(
            "import time\nimport gymnasium\n\n"
            "class Slow(gymnasium.Wrapper):\n"
            f"    def step(self, action):\n        time.sleep({delay})\n        return self.env.step(action)\n\n"
            "gymnasium.register('Slow-v0', lambda **keys: Slow(gymnasium.make('CartPole-v1')))\n"
        )
        config = {
            "plugins": [str(Path(directory) / "slow.py")],
            "experiment": {"directory": directory, "threads": 1},
            "algorithm": {"name": "ppo", "max_age": 4, "epochs": 1},
            "environment": {"name": "Slow-v0", "num_envs": 4},
            "buffer": {"size": 256},
            "training": {"pipelined": True, "collectors": collectors, "collection": collection},
            "logging": {"terminal": False, "tensorboard": False},
        }
        with Run.create(load_experiment(config)) as run:
            for _ in range(3):
                run.step()
            times = []
            for _ in range(turns):
                began = time.perf_counter()
                run.step()
                times.append(time.perf_counter() - began)
    return statistics.median(times) * 1_000


def compare_collectors(turns: int) -> None:
    """Time turns of collectors here and on Ray, and of one against two."""
    fast = {where: turn_milliseconds(where, 2, 0.0, turns) for where in ("local", "ray")}
    more = fast["ray"] - fast["local"]
    print(f"turn of 256 steps, 2 collectors: {fast['local']:.1f} ms here, {more:+.1f} ms on Ray (target {TURN:.0f})")
    slow = {count: turn_milliseconds("ray", count, 0.001, turns) for count in (1, 2)}
    print(f"1 ms per step: 2 collectors on Ray are {slow[1] / slow[2]:.2f}× as fast as 1 (target 1.8)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=40)
    arguments = parser.parse_args()
    compare_collectors(arguments.turns)
    compare_sweeps(arguments.steps, arguments.rounds)


if __name__ == "__main__":
    main()
