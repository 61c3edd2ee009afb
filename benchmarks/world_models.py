"""Updates of Dreamer against SheepRL 0.8.4: equal size, 16 sequences of 64 rows, horizon 15, alternating.

Every measurement is a separate process, one at a time, with one thread; the result is the ratio of the medians of the
time of an update. `imag_last=16` is measured apart, since it is less work.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RIVAL = HERE / ".venv-sheeprl"
JOB = {"size": "xs", "batch": 16, "length": 64, "warmup": 2, "updates": 5, "threads": 1}
TARGET = 1.5


def run_ours(job: dict) -> None:
    """Update as the job says, on random data, and print the time of an update."""
    import numpy as np
    import torch

    from rl4sys.algorithms import DreamerConfig, Problem
    from rl4sys.experience import ArraySpec, Sequences
    from rl4sys.networks import NetworksConfig
    from rl4sys.policy import BoxAction
    from rl4sys.seeding import Seeds

    torch.set_num_threads(job["threads"])
    observation = (ArraySpec("state", "float32", (3,)),)
    problem = Problem(observation, BoxAction((-1.0,), (1.0,)), NetworksConfig(), torch.device("cpu"), Seeds(0))
    agent = DreamerConfig(size=job["size"], imag_last=job.get("imag_last")).build(problem)
    rng, shape = np.random.default_rng(0), (job["batch"], job["length"])

    def update() -> None:
        numbers = [rng.normal(size=(*shape, n)).astype(np.float32) for n in (3, 1, 1)]
        ones, no = np.ones(shape, np.float32), np.zeros(shape, np.bool_)
        columns = {"state": numbers[0]}, numbers[1].clip(-1, 1), numbers[2][..., 0], ones, ~no, no
        agent.update(Sequences(*columns, np.zeros(shape, np.int32), {}, {}, ()))

    for _ in range(job["warmup"]):
        update()
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(job["updates"]):
        update()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    parameters = agent.optimizer.parameters.flat.numel()
    print(
        json.dumps({"seconds": seconds / job["updates"], "cpu": cpu_seconds / job["updates"], "parameters": parameters})
    )


def measure(python: str, script: Path, job: dict, *options: str) -> dict:
    """One measurement, in a fresh process."""
    command = [python, str(script), *options, json.dumps(job)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict = json.loads(output.strip().splitlines()[-1])
    return found


def ensure_rival() -> None:
    """Install the rival into a virtual environment of its own, with the torch of this one."""
    if (RIVAL / ".ready").is_file():
        return
    print("installing SheepRL into a separate venv …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(RIVAL)], check=True)
    pip = [str(RIVAL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    constraints = ["-c", str(HERE / "rival_constraints.txt")]
    subprocess.run([*pip, *constraints, "torch"], check=True)
    subprocess.run([*pip, *constraints, "sheeprl==0.8.4"], check=True)
    (RIVAL / ".ready").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", help="internal: measure ours as this job says")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", default="xs", choices=["xs", "s"])
    arguments = parser.parse_args()
    if arguments.ours:
        run_ours(json.loads(arguments.ours))
        return
    ensure_rival()
    job = JOB | {"size": arguments.size}
    found: dict[str, list[dict]] = {"SheepRL": [], "ours": [], "ours, imag_last=16": []}
    for _ in range(arguments.rounds):
        found["SheepRL"].append(measure(str(RIVAL / "bin" / "python"), HERE / "rival_sheeprl.py", job))
        found["ours"].append(measure(sys.executable, Path(__file__), job, "--ours"))
        less = job | {"imag_last": 16}
        found["ours, imag_last=16"].append(measure(sys.executable, Path(__file__), less, "--ours"))
    base = statistics.median(one["seconds"] for one in found["SheepRL"])
    for name, rounds in found.items():
        seconds = statistics.median(one["seconds"] for one in rounds)
        cpu = statistics.median(one["cpu"] for one in rounds)
        print(
            f"{name:20} {1000 * seconds:7.0f} ms/update ({1000 * cpu:.0f} ms CPU), {base / seconds:.2f}x, "
            f"{rounds[0]['parameters']:,} parameters"
        )
    print(f"target: {TARGET}x at equal work")


if __name__ == "__main__":
    main()
