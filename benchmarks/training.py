"""Training throughput against stable-baselines3 and sbx (JAX): the same work, on one machine, alternating.

Every measurement is a separate process, one at a time; the result is the ratio of the medians. The other library may
use the number of threads that suits it best. For continuous control, `products` measures the matrix products of the
updates alone in the same run: an upper limit of the speed for any library that computes the same gradients.
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
    "dqn-cartpole": {"algorithm": "dqn", "environment": "CartPole-v1", "total": 15_000},
    "sac-halfcheetah": {"algorithm": "sac", "environment": "HalfCheetah-v5", "total": 1_000},
    "td3-halfcheetah": {"algorithm": "td3", "environment": "HalfCheetah-v5", "total": 1_000},
    "ddpg-halfcheetah": {"algorithm": "ddpg", "environment": "HalfCheetah-v5", "total": 1_000},
}
TARGETS = {
    "ppo-cartpole": {"synchronous": {"sb3": 2.0}, "pipelined": {"sb3": 3.0}},
    "ppo-lunarlander": {"synchronous": {"sb3": 1.7}, "pipelined": {"sb3": 3.0}},
    "dqn-cartpole": {"synchronous": {"sb3": 1.7}},
    "sac-halfcheetah": {"synchronous": {"sb3": 1.7, "sbx": 1.0}, "pipelined": {}},
    "td3-halfcheetah": {"synchronous": {"sb3": 1.6}, "pipelined": {}},
    "ddpg-halfcheetah": {"synchronous": {"sb3": 1.6}, "pipelined": {}},
}
"""By case and by our collection mode: the lowest acceptable ratio to each rival."""
CONTROL = ("sac", "td3", "ddpg")


def ours(case: dict, *, pipelined: bool) -> float:
    """Our steps per second, in a fresh process."""
    job = case | {"pipelined": pipelined}
    return _speed([sys.executable, __file__, "--ours", json.dumps(job)])


def rival(case: dict, name: str, threads: int) -> float:
    job = case | {"rival": name, "threads": threads, "warmup": _warmup(case)}
    return _speed([str(RIVAL / "bin" / "python"), str(HERE / "rival_sb3.py"), json.dumps(job)])


def _speed(command: list[str]) -> float:
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.strip().splitlines()[-1])["steps_per_second"]


def _warmup(case: dict) -> int:
    return {"ppo": 4_096, "dqn": 2_000}.get(case["algorithm"], 800)


def run_ours(job: dict) -> None:
    """Train as the job specifies and print the speed after the warm-up."""
    from rl4sys.experiments import Run, load_experiment

    if job["algorithm"] == "ppo":
        algorithm = {"name": "ppo", "epochs": job["epochs"], "minibatch_size": 256}
        environment, network, buffer = {"num_envs": 8}, {}, {"size": 8 * job["steps"]}
    elif job["algorithm"] in CONTROL:
        algorithm = {"name": job["algorithm"], "batch_size": 256, "learning_starts": 500}
        network = {part: {"hidden_dims": [256, 256], "activation": "relu"} for part in ("actor", "critic")}
        environment, buffer = {"num_envs": 1}, {"size": 100_000}
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


def run_products(job: dict) -> None:
    """Compute only the matrix products of updates and print their speed."""
    import torch

    width, observation, action = 256, 17, 6
    layers = {
        "actor": [(observation, width), (width, width), (width, action)],
        "critic": [(observation + action, width), (width, width), (width, 1)],
    }
    critics = 1 if job["algorithm"] == "ddpg" else 2
    # Passes as (network, products per layer, members, share of updates). A forward pass is one product per layer, a
    # backward pass two; in an actor step the critics need only the gradient of their inputs.
    actor_critics = critics if job["algorithm"] == "sac" else 1
    actor_steps = 0.5 if job["algorithm"] == "td3" else 1.0
    passes = [("actor", 1, 1, 1.0), ("critic", 1, critics, 1.0), ("critic", 3, critics, 1.0)]
    passes += [("actor", 3, 1, actor_steps), ("critic", 2, actor_critics, actor_steps)]
    arrays = [
        (torch.randn(members, 256, inputs), torch.randn(members, inputs, outputs), products * share)
        for network, products, members, share in passes
        for inputs, outputs in layers[network]
    ]
    updates = 200
    began = time.perf_counter()
    for update in range(updates):
        for rows, weight, products in arrays:
            for _ in range(int(products * (update + 1)) - int(products * update)):
                torch.bmm(rows, weight)
    print(json.dumps({"steps_per_second": updates / (time.perf_counter() - began)}))


def ensure_rival() -> None:
    if (RIVAL / ".ready").is_file():
        return
    print("installing stable-baselines3 and sbx into a separate venv …", flush=True)
    constraints = ["-c", str(HERE / "rival_constraints.txt")]
    subprocess.run([sys.executable, "-m", "venv", str(RIVAL)], check=True)
    pip = [str(RIVAL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *constraints]
    subprocess.run([*pip, "torch"], check=True)
    subprocess.run([*pip, "stable-baselines3", "sbx-rl", "gymnasium[box2d,mujoco]"], check=True)
    (RIVAL / ".ready").touch()


def compare(name: str, rounds: int) -> dict:
    """Median speeds and ratios of one case."""
    case = CASES[name]
    modes = TARGETS[name]
    rivals = ("sb3", "sbx") if case["algorithm"] in CONTROL else ("sb3",)
    threads = max((1, 2), key=lambda count: rival(case, "sb3", count))
    products = ("products",) if case["algorithm"] in CONTROL else ()
    speeds: dict[str, list[float]] = {who: [] for who in (*rivals, *modes, *products)}
    for _ in range(rounds):
        for who in rivals:
            speeds[who].append(rival(case, who, threads))
        for mode in modes:
            speeds[mode].append(ours(case, pipelined=mode == "pipelined"))
        for floor in products:
            speeds[floor].append(_speed([sys.executable, __file__, "--products", json.dumps(case)]))
    medians = {contestant: statistics.median(values) for contestant, values in speeds.items()}
    return {
        "case": name,
        "sb3_threads": threads,
        "steps_per_second": {k: round(v) for k, v in medians.items()},
        "ratio": {
            mode: {who: round(medians[mode] / medians[who], 2) for who in rivals} for mode in (*modes, *products)
        },
        "target": modes,
    }


def _ratios(mode: str, ratio: dict, targets: dict) -> str:
    parts = (f"{r}× {who}" + (f" (target {targets[who]}×)" if who in targets else "") for who, r in ratio.items())
    return f"{mode} {' and '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"any of {', '.join(CASES)}; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    parser.add_argument("--products", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        run_ours(json.loads(arguments.ours))
        return
    if arguments.products:
        run_products(json.loads(arguments.products))
        return
    ensure_rival()
    results = []
    for name in arguments.cases or CASES:
        result = compare(name, arguments.rounds)
        results.append(result)
        if not arguments.json:
            speeds = ", ".join(f"{who} {speed:,}" for who, speed in result["steps_per_second"].items())
            ratios = ", ".join(
                _ratios(mode, ratio, result["target"].get(mode, {})) for mode, ratio in result["ratio"].items()
            )
            print(f"{name}: {ratios}   [steps/s: {speeds}; sb3 on {result['sb3_threads']} thread(s)]", flush=True)
    if arguments.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
