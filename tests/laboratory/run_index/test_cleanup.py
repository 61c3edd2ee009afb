from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from laboratory.example_runs import stopped_after, written
from rl4sys.checkpoints import NoCheckpoint
from rl4sys.experiments import Run, RunDirectory
from rl4sys.laboratory.run_index.cleanup import Recent, Removal, RunInTraining, WrongAge, plan_removals, remove
from rl4sys.laboratory.run_index.index import open_index
from rl4sys.laboratory.run_index.labels import Labels
from rl4sys.laboratory.run_index.training_process import held
from rl4sys.run_files import final_metrics, size_of

torch.set_num_threads(1)


def bulky(path: Path, returns: list[float], *, age: float, environment: str = "CartPole-v1") -> Path:
    """A written run with a checkpoint of a thousand bytes."""
    written(path, returns, environment=environment)
    (path / "checkpoints" / "000000000100").mkdir()
    (path / "checkpoints" / "000000000100" / "manifest.json").write_bytes(bytes(1_000))
    os.utime(path / "config.yaml", (1e9 - age, 1e9 - age))
    return path


def removald(root: Path, keep_best: int, keep_recent: int) -> list[Removal]:
    with open_index(root) as index:
        return plan_removals(root, index.select(), keep_best, Recent(keep_recent))


def names(found: list[Removal]) -> set[str]:
    return {removal.record.id for removal in found}


def test_the_best_the_newest_and_the_tagged_runs_stay_complete(tmp_path: Path) -> None:
    for number in range(8):
        bulky(tmp_path / f"run-{number}", [float(number)], age=number)
    bulky(tmp_path / "pendulum", [-500.0], age=99, environment="Pendulum-v1")
    Labels(("keep",)).write(tmp_path / "run-4")
    found = removald(tmp_path, keep_best=2, keep_recent=3)
    assert names(found) == {"run-3", "run-5"}
    assert [(removal.parts, removal.size) for removal in found] == [(("checkpoints",), 1_000)] * 2
    assert names(removald(tmp_path, keep_best=0, keep_recent=0)) == {
        *(f"run-{n}" for n in (0, 1, 2, 3, 5, 6, 7)),
        "pendulum",
    }


def test_a_run_that_is_running_is_never_touched(tmp_path: Path) -> None:
    path = written(tmp_path / "run", [1.0], finished=False)
    (path / "checkpoints" / "weights").write_bytes(b"dear")
    with held(path):
        assert removald(tmp_path, 0, 0) == []
    (removal,) = removald(tmp_path, 0, 0)
    with held(path), pytest.raises(RunInTraining):
        remove(removal)
    assert (path / "checkpoints" / "weights").is_file()


def test_configs_and_metrics_survive_and_nothing_can_be_resumed_by_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    path = stopped_after(192, tmp_path, logging__tensorboard=True)
    (path / "own.txt").write_text("of the user")
    kept = {
        name: (path / name).read_bytes() for name in ("config.yaml", "manifest.json", "metrics.jsonl", "result.json")
    }
    metrics, size = final_metrics(path), size_of(path)
    (removal,) = removald(tmp_path, 0, 0)
    assert removal.parts == ("checkpoints", "policies", "tensorboard")
    remove(removal)
    assert size_of(path) == size - removal.size
    assert kept == {name: (path / name).read_bytes() for name in kept}
    assert (final_metrics(path), (path / "own.txt").exists()) == (metrics, True)
    with open_index(tmp_path) as index:
        (record,) = index.select()
    assert (record.steps, record.resume_command(tmp_path)) == (192, None)
    assert removald(tmp_path, 0, 0) == []
    with pytest.raises(NoCheckpoint):
        Run.resume(RunDirectory(path))
    assert (path / "metrics.jsonl").read_bytes() == kept["metrics.jsonl"]


def test_recent_runs_are_counted_or_those_of_so_many_days(tmp_path: Path) -> None:
    written(tmp_path / "old", [1.0])
    with open_index(tmp_path) as index:
        (record,) = index.select()
    assert Recent.parse("1", 0.0).among([record]) == [record]
    assert Recent.parse("2d", record.created + 1.9 * 86_400).among([record]) == [record]
    assert Recent.parse("2d", record.created + 2.1 * 86_400).among([record]) == []
    with pytest.raises(WrongAge, match="--keep-recent 3w: expected a number of runs such as 30, or of days"):
        Recent.parse("3w", 0.0)
