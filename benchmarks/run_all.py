"""Runs all benchmarks, or the named ones, one after the other and writes their output to RESULTS.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
BENCHMARKS = {
    "training.py": "Training throughput against stable-baselines3 (ratio of medians, alternating processes)",
    "recurrent.py": "Recurrent PPO against sb3-contrib",
    "world_models.py": "Updates of Dreamer against SheepRL, at equal size",
    "atari.py": "Atari: decisions against Gymnasium's wrappers, PPO against stable-baselines3",
    "runtime.py": "One decision: numpy runtime, torch, stable-baselines3; importing the client core",
    "replay.py": "Drawing 256 of 1M transitions, compared with np.take",
    "scheduling.py": "The simulated batch system: jobs per CPU second",
    "checkpoint.py": "Cost of a checkpoint",
    "records.py": "Cost of an acknowledgement: appending and syncing records",
    "live.py": "Cost of learning for a live system: the Python client, compared with the loop without it",
    "episodes.py": "Many episodes at once: batched decisions, and an episode for each request",
    "short_episodes.py": "One-step episodes: CPU of the server for each, and drops at 20,000 a second",
    "ui.py": "The pages of 10,000 runs: first page, filter, comparison, live line, memory",
    "ui_fleet.py": "The fleet page in a browser: delay, cost for servers, memory",
    "control.py": "The kill switch with 200 clients",
    "pacing.py": "Share of the experience of fast clients that a PPO learner uses",
    "ingest.py": "Cost and capacity of a server",
    "larger_servers.py": "Learners on Ray and two processes of a server, compared with one process",
    "laboratory.py": "Cost of the run index",
    "orchestration.py": "Sweeps and collectors on Ray, compared with processes here",
    "ranks.py": "Two ranks that learn from images together, compared with one process",
    "sweep.py": "Two parallel jobs of a sweep, compared with one",
    "cpp_policy.py": "The C++ policy runtime compared with ONNX Runtime",
    "cpp_client.py": "The C++ client compared with the Python client, and their loops with a loop without a client",
    "cache.py": "Hit rates of the cache that learns, compared with LRU, ARC, S3-FIFO and Belady's bound",
    "load_balancer": "The live load balancer with chaos, compared with least connections: a short run",
    "side_by_side/bench_peers.py": "Beside other libraries, in systems that ask for decisions: a short run",
}
COMMANDS = {
    # Six minutes; 300 s of learning and 20 blocks, as in docs/results/systems.md, take 25.
    "load_balancer": "-m examples.load_balancer live --chaos --seconds 120 --blocks 4 --out build/load_balancer",
    # Ten minutes; `make bench-peers` takes hours.
    "side_by_side/bench_peers.py": "benchmarks/side_by_side/bench_peers.py --decisions 20000 --paced-decisions 10000 "
    "--seeds 1 --minutes 10 --output build/peers.json",
}
"""Commands of benchmarks that are not a file without arguments."""
CPP = HERE.parent / "cpp" / "build" / "release"
HEADER = """# Results

Written by `make bench`. Machines differ and this one is shared, so read the ratios, not the absolute numbers.

- machine: {machine}, {cores} cores, {python}
- versions: {versions}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="run only these, such as live.py, and keep the other results"
    )
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := sorted(set(names) - BENCHMARKS.keys()):
        raise SystemExit(f"Unknown benchmark: {', '.join(unknown)}. Choose from {', '.join(BENCHMARKS)}.")
    sections = _kept()
    for name in names:
        if name in ("cpp_policy.py", "cpp_client.py", "cache.py") and not CPP.is_dir():
            print(f"== {name} is skipped: run `make cpp` first.", flush=True)
            continue
        sections[name] = f"`python {_command(name)}`, {datetime.date.today()}\n\n```text\n{_run(name)}\n```\n"
        _write(sections)


def _kept() -> dict[str, str]:
    """The present sections of RESULTS.md by benchmark."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    parts = {part.partition("\n\n")[0]: part.partition("\n\n")[2] for part in text.split("\n## ")[1:]}
    return {name: parts[title].rstrip("\n") + "\n" for name, title in BENCHMARKS.items() if title in parts}


def _command(name: str) -> str:
    """What follows `python`, from the top of the repository."""
    return COMMANDS.get(name, f"benchmarks/{name}")


def _run(name: str) -> str:
    print(f"== {name}: {BENCHMARKS[name]}", flush=True)
    command = [sys.executable, *_command(name).split()]
    (HERE.parent / "build").mkdir(exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(f"{name} failed with code {process.returncode}; its section of RESULTS.md is unchanged.")
    return "".join(lines).rstrip()


def _write(sections: dict[str, str]) -> None:
    header = HEADER.format(
        machine=f"{platform.system()} {platform.machine()}, {_processor()}",
        cores=os.cpu_count(),
        python=f"Python {platform.python_version()}",
        versions=", ".join(f"{name} {metadata.version(name)}" for name in ("rl4sys", "torch", "numpy", "gymnasium")),
    )
    parts = [f"## {title}\n\n{sections[name]}" for name, title in BENCHMARKS.items() if name in sections]
    RESULTS.write_text("\n".join([header, *parts]))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    main()
