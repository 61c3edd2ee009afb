"""The files of a run directory: their names, and fast readers that need neither torch nor pydantic."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONFIG = "config.yaml"
"""The fully resolved config."""
MANIFEST = "manifest.json"
"""Versions, git revision, seed, threads."""
METRICS = "metrics.jsonl"
"""One record per line."""
METRICS_TABLE = "metrics.csv"
EPISODES = "episodes.csv"
"""One row per episode of the training."""
HASHES = "hashes.jsonl"
"""The hash log: what was collected and learned, one mark per line."""
RESULT = "result.json"
"""How the run ended."""
PROCESS = "process.json"
"""The process that trains the run."""
LABELS = "labels.json"
"""Tags and notes."""
OUTPUT = "output.txt"
"""What a run in a process of its own printed."""
PRUNED = "pruned.txt"
"""Says that a study has pruned the run, and why."""
ERROR = "error.txt"
"""Tracebacks of the errors that ended a run."""
CURVE = "learning_curve.png"
CHECKPOINTS, REPLAY, POLICIES, VIDEOS, PLUGINS = "checkpoints", "replay", "policies", "videos", "plugins"
TENSORBOARD, WANDB, MLFLOW, DEBUG, SCRATCH = "tensorboard", "wandb", "mlflow", "debug", "scratch"

RETURN = "evaluation/return"
"""The metric that runs are ranked by: the mean return of an evaluation."""
TRAINING_RETURN = "rollout/return"
"""The mean return of the last episodes in which the policy was trained."""


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The steps and evaluation returns of a run."""

    steps: int = 0
    best: float | None = None
    """Mean return of the best evaluation."""
    last: float | None = None
    """Mean return of the last one."""

    def after(self, step: int, evaluation: float | None) -> RunProgress:
        """The progress after one more record; evaluations that are not finite are ignored."""
        if evaluation is None or not math.isfinite(evaluation):
            return RunProgress(step, self.best, self.last)
        return RunProgress(step, evaluation if self.best is None else max(self.best, evaluation), evaluation)


def is_run(path: Path) -> bool:
    """Whether a directory is a run; false if it may not be read."""
    try:
        return (path / MANIFEST).is_file() and (path / CONFIG).is_file()
    except PermissionError:
        return False


def read_json(path: Path) -> Mapping[str, Any]:
    """Read a file with one JSON object; empty if there is no such file."""
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds {type(values).__name__}; expected an object")
    return values


def read_config(run: Path) -> Mapping[str, Any]:
    """The resolved config of a run as plain values, without validation."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        values = yaml.load((run / CONFIG).read_bytes(), Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(f"{CONFIG} is damaged: {str(error).splitlines()[0]}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{CONFIG} is damaged: it has no settings")
    return values


def read_progress(run: Path) -> RunProgress:
    """The progress of a run from its metrics, result and checkpoints: a run that crashed has only some of them."""
    progress = RunProgress()
    line = b""
    for line in _whole_lines(run / METRICS):
        if b'"evaluation/return"' in line and (record := parse_record(line)):
            progress = progress.after(record["step"], record["metrics"].get(RETURN))
    if line and (record := parse_record(line)):
        progress = progress.after(record["step"], None)
    result = read_result(run)
    if progress.last is None and result:
        progress = RunProgress(progress.steps, result["best"], result["evaluation"])
    steps = max(progress.steps, result.get("steps", 0), _last_checkpoint(run))
    return RunProgress(steps, progress.best, progress.last)


def read_result(run: Path) -> Mapping[str, Any]:
    """How a run ended; empty if it has not ended, or if the file is damaged."""
    try:
        result = read_json(run / RESULT)
    except ValueError:
        return {}
    return result if {"steps", "finished", "evaluation", "best"} <= result.keys() else {}


def is_resumable(run: Path) -> bool:
    """Whether there is a checkpoint to resume from, or no metrics yet that a restart would lose."""
    return any((run / CHECKPOINTS).glob(f"*/{MANIFEST}")) or not (run / METRICS).is_file()


def _last_checkpoint(run: Path) -> int:
    names = [file.parent.name for file in (run / CHECKPOINTS).glob(f"*/{MANIFEST}")]
    return max((int(name) for name in names if name.isdecimal()), default=0)


def read_records(run: Path) -> Iterator[Mapping[str, Any]]:
    """The metric records of a run; damaged lines are skipped."""
    for line in _whole_lines(run / METRICS):
        if record := parse_record(line):
            yield record


def final_metrics(run: Path) -> dict[str, float]:
    """The last value of every metric."""
    values: dict[str, float] = {}
    for record in read_records(run):
        values |= {name: value for name, value in record["metrics"].items() if value is not None}
    return values


def size_of(path: Path) -> int:
    """Bytes in a file, or in all files below a directory; links are not counted."""
    if path.is_symlink():
        return 0
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def _whole_lines(path: Path) -> Iterator[bytes]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    yield from data.split(b"\n")[:-1]


def parse_record(line: bytes) -> dict[str, Any] | None:
    """The record in one line of metrics; None if the line is damaged."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if _is_record(record) else None


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("step"), int):
        return False
    metrics = value.get("metrics")
    return isinstance(metrics, dict) and all(isinstance(each, int | float | None) for each in metrics.values())
