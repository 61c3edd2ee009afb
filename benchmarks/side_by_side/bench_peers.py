"""RL4Sys beside other libraries, in systems that ask for decisions.

Run `make bench-peers`, or `python benchmarks/side_by_side/bench_peers.py --decisions 20000 --seeds 1`. Each peer gets a
virtual environment of its own, made on demand. Prints a table for each work, the median over seeds, and writes
results.json beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from systems import WORKS

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "rival_constraints.txt"
REQUIRED = {
    "sb3": ["stable-baselines3"],
    "torchrl": ["torchrl", "tensordict"],
    "cleanrl": [],
    "rllib": ["ray[rllib]", "msgpack", "msgpack-numpy"],
}
"""Packages of a peer, besides torch, which is installed first so that no other package pulls in another build."""
SYSTEMS = ["gymnasium", "Box2D", "pydantic", "pyyaml", "zstandard"]
"""Packages of the systems that ask."""
UNDECLARED = {"cleanrl": ["cleanrl==1.2.0"]}
"""Packages that are installed without what they ask for: CleanRL declares old releases of Python and Gym."""
PINNED = {"rllib": ("gymnasium",), "torchrl": ("tensordict",)}
"""Packages of which a peer asks for a release of its own."""
SEPARATE = ("rl4sys", "rllib")
"""Those that train in a process of their own."""
COLUMNS = {
    "decisions_per_second": ("decisions per second", "{:,.0f}"),
    "share": ("share of the bare loop", "{:.2f}"),
    "act_p50_us": ("act, median, µs", "{:,.1f}"),
    "act_p99_us": ("act, p99, µs", "{:,.0f}"),
    "act_p999_us": ("act, p99.9, µs", "{:,.0f}"),
    "longest_stall_ms": ("longest stall, ms", "{:,.1f}"),
    "late_ticks": ("share of late ticks", "{:.3f}"),
    "client_cpu_us": ("CPU of the system's thread per decision, µs", "{:,.0f}"),
    "trainer_cpu_us": ("CPU of training per decision, µs", "{:,.0f}"),
    "rss_mb": ("memory of the system's process, MB", "{:,.0f}"),
    "bytes_per_decision": ("bytes sent per decision", "{:,.0f}"),
    "recorded": ("share of decisions that were recorded", "{:.2f}"),
    "updates": ("updates", "{:,.0f}"),
    "return": ("", "{:,.2f}"),
    "absent": ("share of choices that were not there", "{:.2f}"),
    "lines": ("statements of user code", "{:,.0f}"),
}


def python_of(peer: str) -> str:
    """The interpreter of a peer; its environment is made if there is none."""
    if peer not in REQUIRED:
        return sys.executable
    place = HERE.parent / f".venv-peer-{peer}"
    if not (place / ".ready").is_file():
        print(f"installing {peer} into {place} …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        constraints = place / "constraints.txt"
        constraints.write_text(
            "".join(line for line in CONSTRAINTS.open() if not line.startswith(PINNED.get(peer, ("-",))))
        )
        pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
        subprocess.run([*pip, "torch"], check=True)
        subprocess.run([*pip, *REQUIRED[peer], *SYSTEMS], check=True)
        if peer in UNDECLARED:
            subprocess.run([*pip, "--no-deps", "--ignore-requires-python", *UNDECLARED[peer]], check=True)
        (place / ".ready").touch()
    return str(place / "bin" / "python")


def measured(peer: str, work: str, decisions: int, seed: int) -> dict[str, Any]:
    """One run of a peer."""
    command = [python_of(peer), str(HERE / "run_peer.py"), "--peer", peer, "--work", work, "--seed", str(seed)]
    command += ["--decisions", str(decisions), *(["--kill"] if peer in SEPARATE else [])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{peer} failed in {work}: {done.stderr.strip()[-800:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every number."""
    names = [name for name, value in runs[0].items() if isinstance(value, (int, float))]
    return {name: statistics.median(run[name] for run in runs) for name in names}


def table(found: dict[str, dict[str, Any]], result: str) -> str:
    """A row for each column, so that it can be read on a page; `result` names what the system achieved."""
    rows = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for name, (label, form) in COLUMNS.items():
        cells = (form.format(each[name]) if each.get(name) is not None else "–" for each in found.values())
        rows.append(f"| {label or result} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def kills(runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What became of the systems after a kill -9 of the trainer."""
    said = []
    for peer in SEPARATE:
        after = [run["after_kill"] for run in runs.get(peer, [])]
        if problems := {kill["problem"] for kill in after if "problem" in kill}:
            said.append(f"kill -9 of the trainer of {peer}: the system got {'; '.join(sorted(problems))}")
        elif after:
            stall = max(kill["longest_stall_ms"] for kill in after)
            said.append(
                f"kill -9 of the trainer of {peer}: the system took all {after[0]['decisions']:,} later decisions, the "
                f"longest in {stall:.1f} ms"
            )
    return [*said, "the others train in the system's process and end with it"]


def compare(work: str, peers: list[str], decisions: int, seeds: int) -> dict[str, list[dict[str, Any]]]:
    """All peers in one work. Seed by seed, so that every peer meets the same hours of a machine."""
    runs: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    for seed in range(1, seeds + 1):
        for peer, each in runs.items():
            each.append(measured(peer, work, decisions, seed))
    found = {peer: median(each) for peer, each in runs.items()}
    for each in found.values():
        each["share"] = each["decisions_per_second"] / found["bare"]["decisions_per_second"]
    print(f"\n## {WORKS[work].title}\n\n{decisions:,} decisions, {seeds} seeds\n\n{table(found, WORKS[work].result)}\n")
    print("\n".join(kills(runs)), flush=True)
    return runs


def main() -> None:
    """Run all peers in all works."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--paced-decisions", type=int, default=60_000, help="of the paced work: a minute")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--peers", nargs="+", choices=["rl4sys", *REQUIRED], default=["rl4sys", *REQUIRED])
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    asked = parser.parse_args()
    results = {}
    for work in asked.works:
        decisions = asked.paced_decisions if work == "paced" else asked.decisions
        results[work] = compare(work, ["bare", *asked.peers], decisions, asked.seeds)
    asked.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
