"""RL4Sys beside other libraries, in systems that ask for decisions.

Run `make bench-peers`, or `python benchmarks/side_by_side/bench_peers.py --decisions 20000 --minutes 20`. Each peer
gets a virtual environment of its own, made on demand. In every work the system asks first, which libraries that own the
loop answer through one adapter; then each library trains in a loop of its own with the system as its environment, which
shows what the adapter costs. Prints a table for each, the median over seeds, with the columns in which RL4Sys is not
first, and writes results.json beside it.

There is no column for the original RL4Sys: this repository has no figures of it for these works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

from systems import WORKS, Work

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "rival_constraints.txt"
REQUIRED = {
    "sb3": ["stable-baselines3"],
    "torchrl": ["torchrl", "tensordict"],
    "cleanrl": [],
    "rllib": ["ray[rllib]", "msgpack", "msgpack-numpy"],
}
"""Packages of a peer, besides torch, which is installed first so that no other package pulls in another build."""
SYSTEMS = ["gymnasium", "Box2D", "pygame-ce", "pydantic", "pyyaml", "zstandard"]
"""Packages of the systems that ask."""
UNDECLARED = {"cleanrl": ["cleanrl==1.2.0"]}
"""Packages that are installed without what they ask for: CleanRL declares old releases of Python and Gym."""
PINNED = {"rllib": ("gymnasium",), "torchrl": ("tensordict",)}
"""Packages of which a peer asks for a release of its own."""
LOOPS = ("system", "library")
SEPARATE = ("rl4sys", "rllib")
"""Those that train in a process of their own."""


class Column(NamedTuple):
    """A number that is measured of every peer."""

    label: str
    form: str
    best: Literal["high", "low"]


COLUMNS = {
    "decisions": Column("decisions", "{:,.0f}", "high"),
    "decisions_per_second": Column("decisions per second", "{:,.0f}", "high"),
    "share": Column("share of the bare loop", "{:.2f}", "high"),
    "act_p50_us": Column("act, median, µs", "{:,.1f}", "low"),
    "act_p99_us": Column("act, p99, µs", "{:,.0f}", "low"),
    "act_p999_us": Column("act, p99.9, µs", "{:,.0f}", "low"),
    "longest_stall_ms": Column("longest stall, ms", "{:,.1f}", "low"),
    "late_ticks": Column("share of late ticks", "{:.3f}", "low"),
    "client_cpu_us": Column("CPU of the system's thread per decision, µs", "{:,.0f}", "low"),
    "trainer_cpu_us": Column("CPU of training per decision, µs", "{:,.0f}", "low"),
    "rss_mb": Column("memory of the system's process, MB", "{:,.0f}", "low"),
    "bytes_per_decision": Column("bytes sent per decision", "{:,.0f}", "low"),
    "bytes_per_update": Column("bytes received per update", "{:,.0f}", "low"),
    "recorded": Column("share of decisions that were recorded", "{:.2f}", "high"),
    "used": Column("share of decisions that were learned from", "{:.2f}", "high"),
    "updates": Column("updates", "{:,.0f}", "high"),
    "return": Column("", "{:,.2f}", "high"),
    "absent": Column("share of choices that were not there", "{:.2f}", "low"),
    "lines": Column("statements of user code", "{:,.0f}", "low"),
}
_START = 15.0
"""Seconds of a run that are not measured: imports, a server or Ray that starts, a kill."""
_SHORTEST = 3.0
"""Seconds that are measured in any case."""


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


class Budget:
    """Shares wall time among the runs that are left; runs that end early leave more for the others."""

    def __init__(self, minutes: float, runs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._runs = clock, runs
        self._end = clock() + 60.0 * minutes

    def next(self) -> float:
        """Seconds that the next run may measure."""
        share = (self._end - self._clock()) / max(1, self._runs)
        self._runs -= 1
        return max(_SHORTEST, share - _START)


def measured(peer: str, work: str, decisions: int, seed: int, seconds: float, *, owns_loop: bool) -> dict[str, Any]:
    """One run of a peer; with `problem` alone if it fails."""
    command = [python_of(peer), str(HERE / "run_peer.py"), "--peer", peer, "--work", work, "--seed", str(seed)]
    command += ["--decisions", str(decisions), "--seconds", str(seconds), *(["--own-loop"] if owns_loop else [])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1] / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        return {"problem": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][-300:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every number."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for name, value in run.items():
            if isinstance(value, (int, float)):
                found.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def table(found: dict[str, dict[str, Any]], result: str) -> str:
    """A row for each column, so that it can be read on a page; `result` names what the system achieved."""
    rows = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for name, column in COLUMNS.items():
        cells = (column.form.format(each[name]) if each.get(name) is not None else "–" for each in found.values())
        rows.append(f"| {column.label or result} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def places(found: dict[str, dict[str, Any]], work: Work) -> str:
    """In which columns RL4Sys is not first among the peers, with the numbers."""
    if "rl4sys" not in found:
        return "RL4Sys was not measured."
    ours, others = found["rl4sys"], {peer: each for peer, each in found.items() if peer not in ("rl4sys", "bare")}
    behind, compared = [], 0
    for name, column in COLUMNS.items():
        theirs = {peer: each[name] for peer, each in others.items() if each.get(name) is not None}
        if name == "decisions" or ours.get(name) is None or not theirs:
            continue
        compared += 1
        is_low = column.best == "low" or (name == "return" and work.is_cost)
        best = min(theirs, key=theirs.__getitem__) if is_low else max(theirs, key=theirs.__getitem__)
        if theirs[best] < ours[name] if is_low else theirs[best] > ours[name]:
            shown = f"{column.form.format(ours[name])}, {best} {column.form.format(theirs[best])}"
            behind.append(f"{column.label or work.result} ({shown})")
    said = f"RL4Sys is first, or equal to the first, in {compared - len(behind)} of {compared} columns"
    return f"{said}; not in: {'; '.join(behind)}." if behind else f"{said}."


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


def compare(
    work: str, peers: list[str], decisions: int, seeds: int, budget: Budget, *, owns_loop: bool
) -> dict[str, list[dict[str, Any]]]:
    """All peers in one work. Seed by seed, so that every peer meets the same hours of a machine."""
    runs: dict[str, list[dict[str, Any]]] = {peer: [] for peer in peers}
    for seed in range(1, seeds + 1):
        for peer, each in runs.items():
            owns = owns_loop and peer != "bare"
            each.append(measured(peer, work, decisions, seed, budget.next(), owns_loop=owns))
    good = {peer: [run for run in each if "problem" not in run] for peer, each in runs.items()}
    found = {peer: median(each) for peer, each in good.items() if each}
    for each in found.values():
        if "bare" in found:
            each["share"] = each["decisions_per_second"] / found["bare"]["decisions_per_second"]
    loop = "each library in a loop of its own" if owns_loop else "the system asks"
    print(f"\n## {WORKS[work].title}: {loop}\n\n{decisions:,} decisions at most, {seeds} seeds\n")
    print(f"{table(found, WORKS[work].result)}\n\n{places(found, WORKS[work])}")
    for peer, each in runs.items():
        for problem in sorted({run["problem"] for run in each if "problem" in run}):
            print(f"{peer} failed: {problem}")
    print("\n".join([] if owns_loop else kills(good)), flush=True)
    return runs


def main() -> None:
    """Run all peers in all works, asked by the system and in loops of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=200_000)
    parser.add_argument("--paced-decisions", type=int, default=60_000, help="of the paced work: a minute")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for everything: slow runs stop earlier")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--peers", nargs="+", choices=["rl4sys", *REQUIRED], default=["rl4sys", *REQUIRED])
    parser.add_argument("--loops", nargs="+", choices=LOOPS, default=list(LOOPS), help="who owns the loop")
    parser.add_argument("--output", type=Path, default=HERE / "results.json")
    asked = parser.parse_args()
    for peer in asked.peers:
        # Installed before the time is shared.
        python_of(peer)
    peers, results = ["bare", *asked.peers], {}
    budget = Budget(asked.minutes, len(asked.loops) * len(asked.works) * asked.seeds * len(peers))
    for work in asked.works:
        decisions = asked.paced_decisions if work == "paced" else asked.decisions
        for loop in asked.loops:
            owns = loop == "library"
            results[f"{work}, {loop}"] = compare(work, peers, decisions, asked.seeds, budget, owns_loop=owns)
    asked.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
