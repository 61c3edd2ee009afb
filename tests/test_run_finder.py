from __future__ import annotations

import re
from pathlib import Path

import pytest

from rl4sys.experiments import RunNotFound, find_run
from rl4sys.run_finder import find_all, find_newest


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make_run(path: str) -> None:
    Path(path).mkdir(parents=True)
    Path(path, "config.yaml").touch()
    Path(path, "manifest.json").touch()


def test_a_run_is_found_by_path_and_by_the_beginning_of_its_name() -> None:
    make_run("runs/ppo-CartPole-1")
    make_run("elsewhere/dqn[2]-1")
    assert find_run("runs/ppo-CartPole-1").path == Path("runs/ppo-CartPole-1")
    assert find_run("ppo").path == Path("runs/ppo-CartPole-1")
    assert find_run("elsewhere/dqn[").path == Path("elsewhere/dqn[2]-1")


def test_a_full_name_has_priority_over_the_beginning_of_others() -> None:
    make_run("runs/ppo-1")
    make_run("runs/ppo-1-2")
    assert find_run("ppo-1").path == Path("runs/ppo-1")


def test_runs_of_sweeps_are_found_by_name_and_by_path() -> None:
    make_run("runs/sweep/lr-1")
    make_run("runs/other/deep/lr-2")
    make_run("runs/other/lr-1")
    assert find_run("lr-2").path == Path("runs/other/deep/lr-2")
    assert find_run("sweep/lr").path == find_run("runs/sweep/lr-").path == Path("runs/sweep/lr-1")
    with pytest.raises(RunNotFound, match="'lr-1' matches 2 runs"):
        find_run("lr-1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ppo", "matches 2 runs; give more of the name:\n  runs/ppo-1\n  runs/ppo-2"),
        ("runs/pqo-1", "There is no run 'runs/pqo-1', here or in runs/. Did you mean ppo-1"),
        ("runs", "'runs' is not a run: it has no config.yaml and manifest.json. It contains runs:\n  runs/ppo-1"),
        ("own", "'own' is not a run"),
        ("nothing-like-it", "`rl4sys list` shows"),
    ],
)
def test_anything_but_one_run_is_an_error(text: str, message: str) -> None:
    make_run("runs/ppo-1")
    make_run("runs/ppo-2")
    Path("own").mkdir()
    Path("own/config.yaml").touch()
    with pytest.raises(RunNotFound, match=re.escape(message)):
        find_run(text)


def test_last_is_the_newest_run_below_the_directory() -> None:
    make_run("runs/sweep/ppo-seed1-20260102-120000-2")
    make_run("runs/sweep/ppo-seed0-20260102-120000")
    make_run("runs/dqn-seed0-20260101-120000")
    make_run("other/sac-seed0-20270101-120000")
    assert find_run("last").path == Path("runs/sweep/ppo-seed1-20260102-120000-2")
    assert find_run("last", Path("other")).path == Path("other/sac-seed0-20270101-120000")


def test_without_runs_there_is_no_last_one() -> None:
    with pytest.raises(RunNotFound, match="There is no last run: there are no runs in runs/"):
        find_run("last")


def test_of_several_runs_the_newest_is_found_with_a_note() -> None:
    make_run("runs/ppo-a-seed0-20260102-120000")
    make_run("runs/ppo-b-seed0-20260101-120000")
    notes: list[str] = []
    assert find_newest("ppo", note=notes.append) == Path("runs/ppo-a-seed0-20260102-120000")
    assert notes == ["'ppo' matches 2 runs; this is the newest of them, runs/ppo-a-seed0-20260102-120000"]


def test_an_absolute_path_needs_no_directory_of_runs(tmp_path: Path) -> None:
    make_run("elsewhere/ppo-1")
    assert find_all(tmp_path / "elsewhere/ppo") == [tmp_path / "elsewhere/ppo-1"]


def test_the_name_that_was_given_to_a_run_has_priority_over_newer_runs_that_begin_alike() -> None:
    make_run("runs/mod-seed0-20260101-120000")
    make_run("runs/mod-seed1-20260101-120000-2")
    make_run("runs/modbr-seed0-20260102-120000")
    assert find_newest("mod") == Path("runs/mod-seed1-20260101-120000-2")
    assert len(find_all("mod")) == 2
    assert len(find_all("mo")) == 3
