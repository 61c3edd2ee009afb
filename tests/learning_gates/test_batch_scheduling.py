"""Learning gates for batch scheduling: learned rules against heuristics on the test part (`make test-learning`).

The trace is generated, or lublin_256.swf.gz of the directory that RL4SYS_TRACES names. With `-s` all numbers are shown.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from rl4sys.environments.scheduling import ProtocolName, Workload, generate, read_swf, write_swf
from rl4sys.experiments import Run, load_experiment

EXAMPLES = Path(__file__).parents[2] / "examples"
SEEDS = (1, 2, 3)
SEQUENCES, LENGTH = 200, 256
MAX_WAIT = 72 * 3600.0


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if (directory := os.environ.get("RL4SYS_TRACES")) is not None:
        return Path(directory) / "lublin_256.swf.gz"
    path = tmp_path_factory.mktemp("trace") / "generated.swf.gz"
    write_swf(generate(10_000, 256, np.random.default_rng(0)), path)
    return path


def summaries(trace: Path, protocol: ProtocolName, runs: list[Path], max_wait: float | None) -> dict[str, Any]:
    """The rules on 200 sequences of the test part, by name; learned ones are called by their number."""
    comparison, learned = (importlib.import_module(f"batch_scheduling.{name}") for name in ("comparison", "learned"))
    jobs: Workload = read_swf(trace).jobs.part("test")
    sequences = jobs.sequences(SEQUENCES, LENGTH, np.random.default_rng(0))
    rivals = comparison.heuristic_rivals(protocol, ["f1"], [16])
    rivals += [learned.learned_rival(str(n), str(run), protocol, max_wait) for n, run in enumerate(runs)]
    scores = comparison.compare(rivals, sequences, lambda: None)
    found = {score.name: comparison.summary(score, scores[0], np.random.default_rng(0)) for score in scores}
    for name, each in found.items():
        print(f"{name}: slowdown {each['slowdown']:.2f}, {each['relative']}, better on {each['better_on']:.2f}")
    return found


def trained(config: str, seed: int, directory: Path, trace: Path) -> Path:
    """Train by a shipped config; prints the CPU seconds that it took."""
    given = {"seed": seed, "directory": str(directory), "environment.kwargs.trace": str(trace), "threads": 1}
    begin = process_time()
    run = Run.create(load_experiment(config, given))
    run.train()
    print(f"\n{config}, seed {seed}: {process_time() - begin:.0f} CPU seconds")
    return run.directory.path


@pytest.mark.learning
@pytest.mark.xfail(reason="Missed so far: 0.96, 1.04 and 1.04 times F1 on lublin_256 (docs/results/systems.md)")
def test_commit_reaches_f1_from_scratch(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    runs = [trained("ppo_batch_scheduling_commit.yaml", seed, tmp_path, trace) for seed in SEEDS]
    found = summaries(trace, "commit", runs, None)
    assert [found[str(n)]["slowdown"] <= 1.03 * found["f1"]["slowdown"] for n in range(len(SEEDS))] == [True] * 3


@pytest.mark.learning
@pytest.mark.xfail(reason="Missed so far: 0.76, 1.06 and 53 times SJF with seeds 1, 2 and 3 (docs/results/systems.md)")
def test_waiting_lowers_slowdowns_without_starving_jobs(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    runs = [trained("ppo_batch_scheduling_wait.yaml", seed, tmp_path, trace) for seed in SEEDS]
    rules = summaries(trace, "wait", runs, MAX_WAIT)
    found = [rules[str(n)] for n in range(len(SEEDS))]
    relative = {name: [each["relative"][name] for each in found] for name in found[0]["relative"]}
    assert np.mean(relative["slowdown"]) <= 0.75
    assert max(relative["slowdown"]) <= 0.85
    assert max(relative["wait"]) <= 1.25
    assert min(relative["utilisation"]) >= 0.94
    assert max(relative["wait_longest"]) <= 1.1
    assert min(each["better_on"] for each in found) >= 0.8
