"""Runs for the index: trained ones where it matters how they were made, written ones where only numbers matter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from experiments.runs import PPO, small
from rl4sys.experiments import MetricRecord, Run
from rl4sys.laboratory.run_index.index_logger import index_run


def train(directory: Path, **overrides: Any) -> Path:
    """A real run of 256 steps, indexed as by the command line."""
    run = Run.create(small(PPO, directory, **overrides))
    with index_run(run.directory.path) as index_logger:
        run.train([index_logger])
    return run.directory.path


def stopped_after(steps: int, directory: Path, **overrides: Any) -> Path:
    """A real run that was asked to stop."""
    run = Run.create(small(PPO, directory, **overrides))
    with index_run(run.directory.path) as index_logger:
        run.train([index_logger], lambda: run.steps >= steps)
    return run.directory.path


def written(
    path: Path,
    returns: Sequence[float] = (),
    *,
    algorithm: str = "ppo",
    environment: str = "CartPole-v1",
    seed: int = 0,
    finished: bool = True,
    **settings: Any,
) -> Path:
    """The files of a run with an evaluation every 100 steps."""
    path.mkdir(parents=True)
    config = {
        "experiment": {"name": None, "seed": seed},
        "algorithm": {"name": algorithm, **settings},
        "environment": {"name": environment},
        "training": {"total_timesteps": 100 * max(1, len(returns))},
    }
    (path / "config.yaml").write_text(yaml.safe_dump(config))
    digest = json.dumps([algorithm, environment, settings], sort_keys=True)
    git = {"revision": "0123456789abcdef", "dirty": True}
    (path / "manifest.json").write_text(json.dumps({"seed": seed, "config": digest, "git": git}))
    records = [
        MetricRecord(100 * place, {"evaluation/return": value}, {}) for place, value in enumerate(returns, start=1)
    ]
    (path / "metrics.jsonl").write_text("".join(record.to_json() + "\n" for record in records))
    (path / "checkpoints").mkdir()
    if finished:
        best, last = (max(returns), returns[-1]) if returns else (None, None)
        result = {"steps": 100 * len(returns), "finished": True, "evaluation": last, "best": best}
        (path / "result.json").write_text(json.dumps({**result, "seconds": 1.0, "fingerprint": {}}))
    return path
