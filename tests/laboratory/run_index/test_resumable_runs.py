from __future__ import annotations

from pathlib import Path

import pytest

from laboratory.example_runs import written
from rl4sys.laboratory.run_index.resumable_runs import find_resumable
from rl4sys.run_finder import RunNotFound


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_only_unfinished_run_of_a_name_is_resumed() -> None:
    written(Path("runs/ppo-1"), [1.0], seed=1)
    run = written(Path("runs/ppo-2"), [1.0], seed=2, finished=False)
    notes: list[str] = []
    assert find_resumable(["ppo"], note=notes.append) == [run]
    assert notes == ["'ppo' matches 2 runs; 1 unfinished: runs/ppo-2"]


def test_unfinished_seeds_of_one_experiment_are_resumed_together() -> None:
    runs = [written(Path(f"runs/ppo-{seed}"), [1.0], seed=seed, finished=seed == 2) for seed in (1, 2, 3)]
    notes: list[str] = []
    assert find_resumable(["ppo"], note=notes.append) == [runs[0], runs[2]]
    assert notes == ["'ppo' matches 3 runs; 2 unfinished of one experiment, with seeds 1, 3"]


def test_unfinished_runs_of_different_experiments_need_more_of_the_name() -> None:
    written(Path("runs/ppo-1"), [1.0], seed=1, finished=False)
    written(Path("runs/ppo-2"), [1.0], seed=2, finished=False, lr=0.5)
    with pytest.raises(RunNotFound, match="matches 2 runs; give more of the name"):
        find_resumable(["ppo"])


def test_several_names_are_resumed_together_each_once() -> None:
    runs = [written(Path(f"runs/ppo-{lr}"), [1.0], finished=False, lr=lr) for lr in (1, 2)]
    assert find_resumable(["ppo-1", "ppo-2", "runs/ppo-1"]) == runs
