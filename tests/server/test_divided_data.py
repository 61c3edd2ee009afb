"""The data directory of several processes: learners are where the rule says, and are never missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.file_lock import FileLock
from rl4sys.server.divided_data import divide, require_undivided
from rl4sys.server.options import ImpossibleSetup


def learners(data: Path) -> set[str]:
    return {str(path.parent.relative_to(data)) for path in data.glob("**/setup.json")}


def make(data: Path, *names: str) -> None:
    for name in names:
        (data / "learners" / name).mkdir(parents=True)
        (data / "learners" / name / "setup.json").touch()


def test_learners_move_with_the_number_of_processes_and_back(tmp_path: Path) -> None:
    make(tmp_path, "a", "b", "shared~fleet")
    whole = learners(tmp_path)
    divide(tmp_path, 4)
    expected = {"process-3/learners/a", "process-1/learners/b", "process-1/learners/shared~fleet"}
    assert learners(tmp_path) == expected
    divide(tmp_path, 2)
    assert learners(tmp_path) == {name.replace("process-3", "process-1") for name in expected}
    divide(tmp_path, 1)
    assert learners(tmp_path) == whole


def test_one_process_does_not_miss_the_learners_of_several(tmp_path: Path) -> None:
    make(tmp_path, "a")
    require_undivided(tmp_path)
    divide(tmp_path, 2)
    with pytest.raises(ImpossibleSetup, match="1 brings them all back together"):
        require_undivided(tmp_path)


def test_data_that_are_served_are_not_divided(tmp_path: Path) -> None:
    make(tmp_path, "a")
    with FileLock.acquire(tmp_path / "lock", create=0o600), pytest.raises(ImpossibleSetup, match="End that one first"):
        divide(tmp_path, 2)
    assert learners(tmp_path) == {"learners/a"}


def test_a_learner_in_two_places_is_not_overwritten(tmp_path: Path) -> None:
    make(tmp_path, "a")
    make(tmp_path / "process-1", "a")
    with pytest.raises(ImpossibleSetup, match="Move one of them away"):
        divide(tmp_path, 2)
