"""Cost of the run index: listing 10,000 runs takes at most 0.5 s including process start, and indexing a CartPole run
at most 1 % of its time.

.venv/bin/python benchmarks/laboratory.py [--json]
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rl4sys.experiments import MetricRecord, Run, load_experiment
from rl4sys.laboratory.run_index.index import discard, open_index
from rl4sys.laboratory.run_index.index_logger import index_run

RUNS = 10_000
ROUNDS = 7
LIST_LIMIT = 0.5
INDEX_LIMIT = 0.01
COMMANDS = {
    "list": ("list", "--limit", "50"),
    "list, filtered and sorted": ("list", "--filter", "algorithm=ppo", "return>400", "--sort", "return"),
    "list --json, all runs": ("list", "--json"),
    "process start (--version)": ("--version",),
}


def small(directory: Path, **overrides: object) -> Run:
    values = {"directory": str(directory), "threads": 1, "logging.terminal": False, "logging.tensorboard": False}
    return Run.create(load_experiment("ppo_CartPole-v1.yaml", {**values, **overrides}))


def fill(root: Path) -> None:
    """Create ten thousand finished runs: copies of a real one with other seeds and returns."""
    run = small(root, **{"training.total_timesteps": 4_096, "training.eval_frequency": 2_048})
    with index_run(run.directory.path) as index_logger:
        run.train([index_logger])
    shutil.rmtree(run.directory.checkpoints)
    files = {path.name: path.read_text() for path in run.directory.path.iterdir() if path.is_file()}
    manifest, lines = json.loads(files["manifest.json"]), files["metrics.jsonl"].splitlines()
    for number in range(1, RUNS):
        copy = root / f"ppo-CartPole-v1-seed{number}-20260101-120000"
        copy.mkdir()
        last = json.loads(lines[-1])
        last["metrics"]["evaluation/return"] = float(number % 500)
        changed = {
            "manifest.json": json.dumps(manifest | {"seed": number}),
            "metrics.jsonl": "\n".join([*lines[:-1], json.dumps(last)]) + "\n",
        }
        for name, text in (files | changed).items():
            (copy / name).write_text(text)


def listing(root: Path) -> dict:
    """The median wall-clock and CPU seconds of each command, including process start."""
    results = {}
    for name, arguments in COMMANDS.items():
        command = [sys.executable, "-m", "rl4sys.cli", *arguments]
        clock, processor = [], []
        for _ in range(ROUNDS):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, cwd=root.parent, check=True, capture_output=True)
            clock.append(time.perf_counter() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        results[name] = {"seconds": statistics.median(clock), "processor": statistics.median(processor)}
    return results


def building(root: Path) -> float:
    """Seconds to rebuild the whole index."""
    discard(root)
    began = time.perf_counter()
    open_index(root).close()
    return time.perf_counter() - began


class Stopwatch:
    """A logger that measures the time spent in another one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self.inner: object = None

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began

    def log(self, record: MetricRecord) -> None:
        with self.running():
            self.inner.log(record)
        self.calls += 1

    def close(self) -> None:
        self.inner.close()


def indexing(directory: Path) -> dict:
    """The share of the time of the shipped CartPole run that is spent on the index."""
    run = small(directory)
    watch = Stopwatch()
    began = time.perf_counter()
    context = index_run(run.directory.path)
    with watch.running():
        watch.inner = context.__enter__()
    run.train([watch])
    with watch.running():
        context.__exit__(None, None, None)
    whole = time.perf_counter() - began
    return {"seconds": watch.seconds, "of": whole, "share": watch.seconds / whole, "calls": watch.calls}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "runs"
        fill(root)
        built = building(root)
        lists = listing(root)
        os.chdir(name)
        indexed = indexing(Path(name) / "cartpole")
    if "--json" in sys.argv:
        print(json.dumps({"lists": lists, "built": built, "followed": indexed}, indent=1))
    else:
        for title, times in lists.items():
            print(f"{title:<28} {times['seconds']:6.2f} s, CPU {times['processor']:5.2f} s")
        print(f"{'index rebuilt':<28} {built:6.2f} s for {RUNS:,} runs")
        share = indexed["share"]
        print(f"indexing a CartPole run: {1_000 * indexed['seconds']:.0f} ms of {indexed['of']:.1f} s = {share:.2%}")
        worst = max(times["seconds"] for title, times in lists.items())
        print(
            f"limits: {LIST_LIMIT} s {'met' if worst <= LIST_LIMIT else 'MISSED'} (the slowest took {worst:.2f} s), "
            f"{INDEX_LIMIT:.0%} {'met' if share <= INDEX_LIMIT else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
