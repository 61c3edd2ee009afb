"""Training throughput against stable-baselines3: the same work, on the same machine, in alternating turns.

Each contestant runs in a process of its own, one at a time; the figure is the ratio of the medians. The rival may
use the number of threads that suits it best.
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

HERE = Path(__file__).parent
RIVAL = HERE / ".venv-sb3"

CASES = {
    "ppo-cartpole": {"algorithm": "ppo", "environment": "CartPole-v1", "steps": 128, "epochs": 4, "total": 60_000},
    "ppo-lunarlander": {
        "algorithm": "ppo",
        "environment": "LunarLander-v3",
        "steps": 256,
        "epochs": 10,
        "total": 30_000,
    },
    "dqn-cartpole": {"algorithm": "dqn", "environment": "CartPole-v1", "steps": 0, "epochs": 0, "total": 15_000},
}
TARGETS = {
    "ppo-cartpole": {"synchronous": 2.0, "pipelined": 3.0},
    "ppo-lunarlander": {"synchronous": 1.7, "pipelined": 3.0},
    "dqn-cartpole": {"synchronous": 1.7},
}


def ours(case: dict, *, pipelined: bool) -> float:
    """Our steps per second, in a fresh process."""
    job = case | {"pipelined": pipelined}
    return _speed([sys.executable, __file__, "--ours", json.dumps(job)])


def rival(case: dict, threads: int) -> float:
    job = case | {"threads": threads, "warmup": _warmup(case)}
    return _speed([str(RIVAL / "bin" / "python"), str(HERE / "rival_sb3.py"), json.dumps(job)])


def _speed(command: list[str]) -> float:
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.strip().splitlines()[-1])["steps_per_second"]


def _warmup(case: dict) -> int:
    return 4_096 if case["algorithm"] == "ppo" else 2_000


def run_ours(job: dict) -> None:
    """Train as the job says and print the speed after the warm-up."""
    from rl4sys.experiments import Run, load_experiment

    if job["algorithm"] == "ppo":
        algorithm = {"name": "ppo", "epochs": job["epochs"], "minibatch_size": 256}
        environment, network, buffer = {"num_envs": 8}, {}, {"size": 8 * job["steps"]}
    else:
        algorithm = {"name": "dqn", "train_frequency": 4, "batch_size": 128, "learning_starts": 1_000, "double": False}
        network = {"actor": {"hidden_dims": [256, 256], "activation": "relu"}}
        environment, buffer = {"num_envs": 1}, {"size": 100_000}
    with tempfile.TemporaryDirectory() as directory:
        config = load_experiment(
            {
                "experiment": {"directory": directory},
                "algorithm": algorithm,
                "environment": {"name": job["environment"], **environment},
                "network": network,
                "buffer": buffer,
                "training": {"total_timesteps": job["total"] + _warmup(job), "pipelined": job["pipelined"]},
            }
        )
        run = Run.create(config)
        while run.steps < _warmup(job):
            run.step()
        began, steps = time.perf_counter(), run.steps
        while not run.finished:
            run.step()
        print(json.dumps({"steps_per_second": (run.steps - steps) / (time.perf_counter() - began)}))
        run.source.close()


def ensure_rival() -> None:
    if (RIVAL / ".ready").is_file():
        return
    print("installing stable-baselines3 into a venv of its own …", flush=True)
    constraints = ["-c", str(HERE / "rival_constraints.txt")]
    subprocess.run([sys.executable, "-m", "venv", str(RIVAL)], check=True)
    pip = [str(RIVAL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *constraints]
    subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, "stable-baselines3", "gymnasium[box2d]"], check=True)
    (RIVAL / ".ready").touch()


def compare(name: str, rounds: int) -> dict:
    """Median speeds and ratios of one case."""
    case = CASES[name]
    modes = list(TARGETS[name])
    threads = max((1, 2), key=lambda count: rival(case, count))
    speeds: dict[str, list[float]] = {"rival": [], **{mode: [] for mode in modes}}
    for _ in range(rounds):
        speeds["rival"].append(rival(case, threads))
        for mode in modes:
            speeds[mode].append(ours(case, pipelined=mode == "pipelined"))
    medians = {contestant: statistics.median(values) for contestant, values in speeds.items()}
    return {
        "case": name,
        "rival_threads": threads,
        "steps_per_second": {k: round(v) for k, v in medians.items()},
        "ratio": {mode: round(medians[mode] / medians["rival"], 2) for mode in modes},
        "target": TARGETS[name],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        run_ours(json.loads(arguments.ours))
        return
    ensure_rival()
    results = []
    for name in arguments.cases or CASES:
        result = compare(name, arguments.rounds)
        results.append(result)
        if not arguments.json:
            speeds = ", ".join(f"{who} {speed:,}" for who, speed in result["steps_per_second"].items())
            ratios = ", ".join(f"{m} {r}× (target {result['target'][m]}×)" for m, r in result["ratio"].items())
            print(f"{name}: {ratios}   [steps/s: {speeds}; rival on {result['rival_threads']} thread(s)]", flush=True)
    if arguments.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
