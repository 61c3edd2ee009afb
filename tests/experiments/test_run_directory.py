from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from rl4sys.experiments import Run
from rl4sys.experiments.run_directory import directory_for_runs, directory_name
from rl4sys.experiments.starting_point import StartingPoint

from .runs import PPO, small

NOW = datetime.datetime(2026, 1, 1, 12)


def test_a_run_is_named_after_experiment_seed_and_time() -> None:
    assert directory_name("ppo-CartPole-v1", 3, NOW) == "ppo-CartPole-v1-seed3-20260101-120000"


def test_a_long_name_is_cut_to_80_characters_and_stays_distinct() -> None:
    one, other = (directory_name(f"{'long-' * 18}{end}", 0, NOW) for end in "ab")
    assert one != other
    assert len(f"{one}-999") == len(f"{other}-999") == 80
    assert one.endswith("-seed0-20260101-120000")


def test_what_was_made_for_a_run_that_failed_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "new" / "runs"
    with pytest.raises(RuntimeError), directory_for_runs(place):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_there_or_that_another_run_uses_stays(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with pytest.raises(RuntimeError), directory_for_runs(old):
        raise RuntimeError
    with pytest.raises(FileExistsError), directory_for_runs(new):
        (new / "run").mkdir(), (new / "run").mkdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]


def test_a_refused_start_leaves_no_directory(tmp_path: Path) -> None:
    first = Run.create(small(PPO, tmp_path / "runs"))
    first.train()
    other = small(PPO, tmp_path / "elsewhere", network__actor__hidden_dims=[9])
    with pytest.raises(ValueError, match="shape"):
        Run.create(other, start=StartingPoint(first.directory.path))
    assert not (tmp_path / "elsewhere").exists()
