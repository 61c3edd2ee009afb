"""Recurrent PPO against sb3-contrib: the same work, on one machine, alternating.

Eight environments, an LSTM of 64 behind no other layer for actor and critic each, and minibatches of 256 steps. Every
measurement is a separate process, one at a time; the result is the ratio of the medians. The other library may use the
number of threads that suits it best.
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
WARMUP = 4_096
CASES = {
    "cartpole": {"environment": "CartPole-v1", "steps": 128, "epochs": 4, "total": 20_000},
    "pendulum": {"environment": "Pendulum-v1", "steps": 256, "epochs": 10, "total": 12_000},
}
TARGET = 2.0


def run_ours(job: dict) -> None:
    """Train as the job specifies and print the speed after the warm-up."""
    from rl4sys.experiments import Run, load_experiment

    network = {"type": "lstm", "units": 64, "hidden_dims": []}
    with tempfile.TemporaryDirectory() as directory:
        config = load_experiment(
            {
                "experiment": {"directory": directory},
                "algorithm": {"name": "ppo", "epochs": job["epochs"], "minibatch_size": 256},
                "environment": {"name": job["environment"], "num_envs": 8},
                "network": {"actor": network, "critic": network},
                "buffer": {"size": 8 * job["steps"]},
                "training": {"total_timesteps": job["total"] + WARMUP},
            }
        )
        run = Run.create(config)
        while run.steps < WARMUP:
            run.step()
        began, steps = time.perf_counter(), run.steps
        while not run.finished:
            run.step()
        print(json.dumps({"steps_per_second": (run.steps - steps) / (time.perf_counter() - began)}))
        run.source.close()


def ours(case: dict) -> float:
    return _speed([sys.executable, __file__, "--ours", json.dumps(case)])


def rival(case: dict, threads: int) -> float:
    job = case | {"algorithm": "recurrent_ppo", "rival": "sb3", "threads": threads, "warmup": WARMUP}
    return _speed([str(RIVAL / "bin" / "python"), str(HERE / "rival_sb3.py"), json.dumps(job)])


def _speed(command: list[str]) -> float:
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.strip().splitlines()[-1])["steps_per_second"]


def ensure_rival() -> None:
    """Install sb3-contrib into the venv of the other benchmarks."""
    if (RIVAL / ".ready-contrib").is_file():
        return
    print("installing sb3-contrib into a separate venv …", flush=True)
    if not RIVAL.is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(RIVAL)], check=True)
    constraints = ["-c", str(HERE / "rival_constraints.txt")]
    pip = [str(RIVAL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *constraints]
    subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, "stable-baselines3", "sb3-contrib", "gymnasium"], check=True)
    (RIVAL / ".ready-contrib").touch()


def compare(name: str, rounds: int) -> dict:
    """Median speeds and their ratio for one case."""
    case = CASES[name]
    threads = max((1, 2), key=lambda count: rival(case, count))
    speeds: dict[str, list[float]] = {"sb3-contrib": [], "ours": []}
    for _ in range(rounds):
        speeds["sb3-contrib"].append(rival(case, threads))
        speeds["ours"].append(ours(case))
    medians = {who: statistics.median(values) for who, values in speeds.items()}
    return {
        "case": name,
        "sb3_threads": threads,
        "steps_per_second": {who: round(speed) for who, speed in medians.items()},
        "ratio": round(medians["ours"] / medians["sb3-contrib"], 2),
        "target": TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)}; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        run_ours(json.loads(arguments.ours))
        return
    ensure_rival()
    results = [compare(name, arguments.rounds) for name in arguments.cases or CASES]
    if arguments.json:
        print(json.dumps(results))
        return
    for result in results:
        speeds = ", ".join(f"{who} {speed:,}" for who, speed in result["steps_per_second"].items())
        print(f"{result['case']}: steps/s {speeds}; {result['ratio']}× sb3-contrib (target {TARGET}×)")


if __name__ == "__main__":
    main()
