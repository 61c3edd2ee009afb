"""Learning gates for batch scheduling: learned rules against heuristics on the test part (`make test-learning`).

The trace is generated, or lublin_256.swf.gz of the directory that RL4SYS_TRACES names. With `-s` all numbers are shown.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from rl4sys.environments.scheduling import HEURISTICS, ProtocolName, Workload, generate, read_swf, write_swf
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


def summaries(
    trace: Path, protocol: ProtocolName, runs: list[Path], max_wait: float | None, heuristics: Sequence[str] = ("f1",)
) -> dict[str, Any]:
    """The rules on 200 sequences of the test part, by name; learned ones are called by their number."""
    comparison, learned = (importlib.import_module(f"batch_scheduling.{name}") for name in ("comparison", "learned"))
    jobs: Workload = read_swf(trace).jobs.part("test")
    sequences = jobs.sequences(SEQUENCES, LENGTH, np.random.default_rng(0))
    rivals = comparison.heuristic_rivals(protocol, heuristics, [16])
    rivals += [learned.learned_rival(str(n), str(run), protocol, max_wait) for n, run in enumerate(runs)]
    scores = comparison.compare(rivals, sequences, lambda: None)
    found = {score.name: comparison.summary(score, scores[0], np.random.default_rng(0)) for score in scores}
    for name, each in found.items():
        print(f"{name}: slowdown {each['slowdown']:.2f}, {each['relative']}, better on {each['better_on']:.2f}")
    return found


def trained(config: str, seed: int, directory: Path, trace: Path, **changed: Any) -> Path:
    """Train by a shipped config; prints the CPU seconds that it took."""
    given = {"seed": seed, "directory": str(directory), "environment.kwargs.trace": str(trace), "threads": 1, **changed}
    begin = process_time()
    run = Run.create(load_experiment(config, given))
    run.train()
    print(f"\n{config}, seed {seed}: {process_time() - begin:.0f} CPU seconds")
    return run.directory.path


@pytest.mark.learning
@pytest.mark.xfail(
    reason="Missed by seed 3 so far: 1.03, 1.02 and 1.04 times F1 on lublin_256 (docs/results/systems.md)"
)
def test_commit_reaches_f1_from_scratch(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    runs = [trained("ppo_batch_scheduling_commit.yaml", seed, tmp_path, trace) for seed in SEEDS]
    found = summaries(trace, "commit", runs, None)
    assert [found[str(n)]["slowdown"] <= 1.03 * found["f1"]["slowdown"] for n in range(len(SEEDS))] == [True] * 3


@pytest.mark.learning
@pytest.mark.skipif("RL4SYS_TRACES" not in os.environ, reason="needs theta_walltime.swf.gz: set RL4SYS_TRACES")
def test_on_theta_no_seed_is_far_from_the_best_heuristic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    theta = Path(os.environ["RL4SYS_TRACES"]) / "theta_walltime.swf.gz"
    start = {"algorithm.imitate": {"decisions": 8_192, "floor": 0.05}, "algorithm.lr": 3e-4}
    start["environment.incumbent"] = "rl4sys.environments.scheduling.incumbents:shortest"
    runs = [trained("ppo_batch_scheduling_commit.yaml", seed, tmp_path, theta, **start) for seed in SEEDS]
    found = summaries(theta, "commit", runs, None, tuple(HEURISTICS))
    best = min(found[name]["slowdown"] for name in HEURISTICS)
    assert [found[str(n)]["slowdown"] <= 1.1 * best for n in range(len(SEEDS))] == [True] * 3


@pytest.fixture(scope="module")
def waiting(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What the learned rules of all seeds reach relative to SJF."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        directory = tmp_path_factory.mktemp("waiting")
        runs = [trained("ppo_batch_scheduling_wait.yaml", seed, directory, trace) for seed in SEEDS]
        rules = summaries(trace, "wait", runs, MAX_WAIT)
        yield [rules[str(n)] for n in range(len(SEEDS))]


@pytest.mark.learning
def test_waiting_lowers_slowdowns_without_starving_jobs(waiting: list[dict[str, Any]]) -> None:
    relative = {name: [each["relative"][name] for each in waiting] for name in waiting[0]["relative"]}
    assert np.mean(relative["slowdown"]) <= 0.75
    assert max(relative["slowdown"]) <= 0.85
    assert max(relative["wait"]) <= 1.25
    assert np.mean(relative["utilisation"]) >= 0.94
    assert max(relative["wait_longest"]) <= 1.1
    assert min(each["better_on"] for each in waiting) >= 0.8


@pytest.mark.learning
@pytest.mark.xfail(reason="Missed by seed 3 so far: 0.946, 0.951 and 0.937 on lublin_256 (docs/results/systems.md)")
def test_waiting_leaves_few_processors_idle_with_every_seed(waiting: list[dict[str, Any]]) -> None:
    assert min(each["relative"]["utilisation"] for each in waiting) >= 0.94
