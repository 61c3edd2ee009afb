from __future__ import annotations

from pathlib import Path

import pytest

import rl4sys
from laboratory.example_runs import written
from rl4sys.laboratory.run_index.run_values import ValueCondition, split_conditions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for place, lr in enumerate((1e-4, 1e-3, 1e-2)):
        written(tmp_path / f"run-{place}", [10.0, 20.0 * place], seed=place, lr=lr, kind="Plain")
    return tmp_path


def found(root: Path, *conditions: str, sort: str = "name") -> list[str]:
    return [run.path.name for run in rl4sys.runs(*conditions, sort=sort, root=root)]


def test_runs_are_found_by_any_setting_or_metric(root: Path) -> None:
    assert set(found(root, "algorithm.lr<5e-3")) == {"run-0", "run-1"}
    assert found(root, "algorithm.lr=0.001") == ["run-1"]
    assert found(root, "evaluation/return>30", "algorithm.kind=pl*") == ["run-2"]
    assert found(root, "seed=0", "algorithm.lr>1") == []
    assert set(found(root, "algorithm.missing!=3")) == {"run-0", "run-1", "run-2"}


def test_runs_are_sorted_by_any_setting_or_metric_the_highest_first(root: Path) -> None:
    assert found(root, sort="algorithm.lr") == ["run-2", "run-1", "run-0"]
    assert found(root, sort="evaluation/return") == ["run-2", "run-1", "run-0"]
    assert found(root, sort="-algorithm.lr") == ["run-0", "run-1", "run-2"]
    assert found(root, sort="-seed") == ["run-2", "run-1", "run-0"]


def test_conditions_over_the_index_stay_there() -> None:
    assert split_conditions(["algorithm=ppo", "return>4", "env=dm_control/*", "git=1.2"]) == (
        ["algorithm=ppo", "return>4", "env=dm_control/*", "git=1.2"],
        [],
    )
    assert split_conditions(["train/loss<=0.5"]) == ([], [ValueCondition("train/loss", "<=", "0.5")])
