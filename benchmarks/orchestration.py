"""Ray compared with local processes: a sweep of 4 trials with 60,000 PPO steps, a turn of two collectors, and kills.

Both sides run in turns, in one run of this program: on a cluster that is up, and with one that the command starts. The
fingerprints of all trials must be equal. Collectors take as many steps as those of a pooled source; the difference of
the medians is what asking over Ray costs per turn. A trial whose process or node is killed is back at work once it is
restored from storage and trains. Numbers mean something only on a machine without other work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

from rl4sys.experiments import Run, load_experiment
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.trials.launcher import Reported
from rl4sys.laboratory.trials.launcher_on_ray import RayLauncher
from rl4sys.laboratory.trials.trial import Trial, TrialOptions

WARM, COLD, TURN = 1.10, 1.35, 4.0
"""The highest acceptable ratios of a sweep on Ray, and milliseconds more per turn."""
PROCESS, NODE = 5.0, 30.0
"""The most seconds that a killed process and a killed node may cost."""
MARK = "RL4SYS_BENCHMARK"
"""The variable by which the processes of this program's trials are found."""
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


def compare_kills(rounds: int) -> None:
    """Time how long a trial is away after its process is killed, and after its node is."""
    os.environ[MARK] = str(os.getpid())
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as files:
        quiet = {"include_dashboard": False, "temp_dir": files}
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
        try:
            nodes = [cluster.add_node(num_cpus=1)]
            config = {
                "experiment": {"directory": f"{place}/runs", "threads": 1},
                "algorithm": {"name": "ppo"},
                "environment": {"name": "CartPole-v1", "num_envs": 2},
                "buffer": {"size": 256},
                "training": {"total_timesteps": 100_000_000, "checkpoint_frequency": 2_000, "eval_frequency": 0},
                "logging": {"terminal": False, "tensorboard": False},
            }
            where = WhereSection(on="ray", address=cluster.address, storage=f"file://{place}/store", retries=1_000)
            launcher = RayLauncher(where, 1)
            launcher.start(Trial("one", load_experiment(config)).launch(TrialOptions(storage=where.storage)))
            seconds: dict[str, list[float]] = {"process": [], "node": []}
            wait_for_work(launcher)
            for _ in range(rounds):
                began = time.perf_counter()
                for pid in trial_processes():
                    os.kill(pid, signal.SIGKILL)
                seconds["process"].append(wait_for_work(launcher) - began)
                nodes.append(cluster.add_node(num_cpus=1))
                began = time.perf_counter()
                cluster.remove_node(nodes.pop(0), allow_graceful=False)
                seconds["node"].append(wait_for_work(launcher) - began)
            launcher.close()
        finally:
            cluster.shutdown()
    for what, most in (("process", PROCESS), ("node", NODE)):
        found = seconds[what]
        print(
            f"back at work after a killed {what}: {statistics.median(found):.1f} s, at most {max(found):.1f} s "
            f"(target {most:.0f})"
        )


def wait_for_work(launcher: RayLauncher) -> float:
    """Wait until the trial has started or was restored, and has then trained and saved; the time of the former."""
    begun = None
    while True:
        for event in launcher.events(1.0):
            match event:
                case Reported(values={"run": _}):
                    begun = time.perf_counter()
                case Reported(values={"record": _}) if begun is not None:
                    return begun
                case Reported():
                    continue
                case _:
                    raise RuntimeError(f"the trial ended: {event}")


def trial_processes() -> list[int]:
    """The processes of this program's trials."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_trial = b"rl4sys.laboratory.trials.worker_process" in words
        if is_trial and f"{MARK}={os.getpid()}".encode() in variables:
            found.append(int(entry.name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--only", choices=("collectors", "sweeps", "kills"))
    arguments = parser.parse_args()
    if arguments.only in (None, "collectors"):
        compare_collectors(arguments.turns)
    if arguments.only in (None, "sweeps"):
        compare_sweeps(arguments.steps, arguments.rounds)
    if arguments.only in (None, "kills"):
        compare_kills(arguments.rounds)


if __name__ == "__main__":
    main()
