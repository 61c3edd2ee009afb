"""Runs every benchmark, one after the other, and writes what they print to RESULTS.md."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
BENCHMARKS = {
    "training.py": "Training throughput against stable-baselines3 (ratio of medians, alternating processes)",
    "runtime.py": "One decision: numpy runtime, torch, stable-baselines3; importing the client core",
    "replay.py": "Drawing 256 of 1M transitions, beside the bare gathers",
    "checkpoint.py": "What a checkpoint costs",
    "records.py": "What an acknowledgement costs: appending and syncing records",
    "live.py": "What learning costs a live system: the Python client, beside the bare loop",
    "ingest.py": "What a server costs and bears",
    "cpp_client.py": "The C++ client beside the Python one, and its loop beside the bare loop",
}
CPP = HERE.parent / "cpp" / "build" / "release"
HEADER = """# Results

Written by `make bench`. Machines differ and this one is shared, so read the ratios, not the absolute numbers.

- date: {date}
- machine: {machine}, {cores} cores, {python}
- versions: {versions}
"""


def main() -> None:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("rl4sys", "torch", "numpy", "gymnasium"))
    parts = [
        HEADER.format(
            date=datetime.date.today(),
            machine=f"{platform.system()} {platform.machine()}, {_processor()}",
            cores=os.cpu_count(),
            python=f"Python {platform.python_version()}",
            versions=versions,
        )
    ]
    for name, title in BENCHMARKS.items():
        if name == "cpp_client.py" and not CPP.is_dir():
            print(f"== {name} is left out: run `make cpp` first.", flush=True)
            continue
        print(f"== {name}: {title}", flush=True)
        command = [sys.executable, str(HERE / name)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
        if process.returncode:
            raise SystemExit(f"{name} failed with code {process.returncode}; RESULTS.md was left as it is.")
        parts.append(f"## {title}\n\n`python benchmarks/{name}`\n\n```text\n{''.join(lines).rstrip()}\n```\n")
    (HERE / "RESULTS.md").write_text("\n".join(parts))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


if __name__ == "__main__":
    main()
