"""Training throughput of this revision against an earlier one: the same work, alternating, each in a fresh process.

Run `python benchmarks/revisions.py REVISION`. The earlier code is taken from the history into a temporary directory and
runs with the packages that are installed here. A ratio above 1 means that this revision is faster; the spread is that
of the rounds.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from training import CASES

ROOT = Path(__file__).parents[1]


def speed(source: Path, case: dict) -> float:
    """Steps per second with the package in this directory."""
    program = ROOT / "benchmarks" / "training.py"
    command = [sys.executable, str(program), "--ours", json.dumps(case | {"pipelined": False})]
    environment = os.environ | {"PYTHONPATH": str(source)}
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    return float(json.loads(output.strip().splitlines()[-1])["steps_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="an earlier commit, such as HEAD~40")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="*", choices=CASES, default=["ppo-cartpole", "dqn-cartpole"])
    options = parser.parse_args()
    archive = subprocess.run(["git", "archive", options.revision, "src"], cwd=ROOT, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as directory:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(directory, filter="data")
        for name in options.cases:
            ratios = []
            for _ in range(options.rounds):
                earlier, now = (speed(source / "src", CASES[name]) for source in (Path(directory), ROOT))
                ratios.append(now / earlier)
            spread = f"rounds {min(ratios):.2f} to {max(ratios):.2f}"
            print(f"{name}: {statistics.median(ratios):.2f}× {options.revision} ({spread})")


if __name__ == "__main__":
    main()
