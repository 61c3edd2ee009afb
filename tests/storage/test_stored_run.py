"""Runs in storage: complete or absent, and owned by the newest attempt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from experiments.runs import DQN, PPO, small
from laboratory.example_runs import stopped_after
from rl4sys.experiments import Run, RunDirectory
from rl4sys.laboratory.run_mirror import RunMirror
from rl4sys.storage import (
    NotStored,
    StorageUnavailable,
    StoredRun,
    Superseded,
    find_stored_runs,
    open_storage,
)


def stored_at(path: Path) -> StoredRun:
    return StoredRun(open_storage(f"file://{path}"))


def a_run(path: Path) -> Path:
    (path / "checkpoints" / "0001").mkdir(parents=True)
    (path / "checkpoints" / "0001" / "state.json").write_text("{}")
    (path / "checkpoints" / "latest").symlink_to("0001")
    (path / "scratch").mkdir()
    (path / "scratch" / "unneeded").write_text("x")
    (path / "metrics.jsonl").write_text("1\n")
    return path


def test_a_run_comes_back_with_its_links_and_without_scratch(tmp_path: Path) -> None:
    stored, run = stored_at(tmp_path / "store"), a_run(tmp_path / "run")
    assert stored.begin(run.name) == 1
    stored.store(run)
    copy = stored_at(tmp_path / "store").fetch(tmp_path / "elsewhere")
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*"))
    assert names == [
        "checkpoints",
        "checkpoints/0001",
        "checkpoints/0001/state.json",
        "checkpoints/latest",
        "metrics.jsonl",
    ]
    assert (copy / "checkpoints" / "latest").readlink() == Path("0001")


def test_only_what_is_new_is_stored_and_what_is_gone_is_removed(tmp_path: Path) -> None:
    stored, run = stored_at(tmp_path / "store"), a_run(tmp_path / "run")
    stored.begin(run.name)
    stored.store(run)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store" / "files").iterdir()}
    (run / "metrics.jsonl").write_text("1\n2\n")
    stored.store(run)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "store" / "files").iterdir()}
    assert len(before) == len(after) == 2
    assert len(before.items() & after.items()) == 1


def test_a_newer_attempt_ends_the_older_one(tmp_path: Path) -> None:
    old, run = stored_at(tmp_path / "store"), a_run(tmp_path / "run")
    old.begin(run.name)
    old.store(run)
    new = stored_at(tmp_path / "store")
    assert new.begin() == 2
    (run / "metrics.jsonl").write_text("written by a process that was thought dead\n")
    with pytest.raises(Superseded, match=r"Attempt 1 ends here: the run in .* was continued by attempt 2"):
        old.store(run)
    assert (new.fetch(tmp_path / "copy") / "metrics.jsonl").read_text() == "1\n"


def test_of_two_attempts_with_one_number_the_later_wins(tmp_path: Path) -> None:
    first, second, run = stored_at(tmp_path / "store"), stored_at(tmp_path / "store"), a_run(tmp_path / "run")
    first.begin(run.name)
    (tmp_path / "store" / "attempts" / "000001.json").unlink()
    second.begin(run.name)
    second.store(run)
    with pytest.raises(Superseded, match="continued by attempt 1"):
        first.store(run)


def test_damage_in_storage_is_found(tmp_path: Path) -> None:
    stored, run = stored_at(tmp_path / "store"), a_run(tmp_path / "run")
    stored.begin(run.name)
    stored.store(run)
    for path in (tmp_path / "store" / "files").iterdir():
        path.write_bytes(b"spoilt")
    with pytest.raises(NotStored, match="is damaged"):
        stored.fetch(tmp_path / "copy")
    assert not (tmp_path / "copy" / "run").exists()


def test_places_that_are_no_storage_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match=r"ftp://x is no storage; give a URL that begins with one of s3://"):
        open_storage("ftp://x")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="cannot be written to"):
        open_storage(f"file://{tmp_path}/file/below").require_writable()
    with pytest.raises(NotStored, match="There is no run in"):
        stored_at(tmp_path).fetch(tmp_path)
    assert list(find_stored_runs(open_storage(f"file://{tmp_path}/nowhere"))) == []


@pytest.mark.parametrize("kind", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_run_that_moves_learns_the_same_bits(kind: dict[str, object], tmp_path: Path) -> None:
    whole = Run.create(small(kind, tmp_path / "whole")).train()
    url = f"file://{tmp_path}/store/run"
    for machine, steps in enumerate((64, 160, 256)):
        mirror = RunMirror(url)
        found = mirror.fetch(tmp_path / f"machine{machine}")
        run = Run.resume(found) if found else Run.create(small(kind, tmp_path / "machine0"))
        mirror.attach(run)
        result = run.train(stop=lambda run=run, steps=steps: run.steps >= steps)
        mirror.conclude(run.directory.path)
    assert result.fingerprint == whole.fingerprint
    assert run.inexact == ()
    assert Path(run.directory.path).parent.name == "machine2"


def test_training_continues_while_the_storage_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mirror = RunMirror(f"file://{tmp_path}/store/run")
    run = Run.create(small(PPO, tmp_path / "runs"))
    mirror.attach(run)
    (tmp_path / "store" / "run" / "files").write_text("in the way")
    run.train(stop=lambda: run.steps >= 128)
    assert "could not be stored" in caplog.text
    (tmp_path / "store" / "run" / "files").unlink()
    mirror.conclude(run.directory.path)
    assert RunMirror(f"file://{tmp_path}/store/run").fetch(tmp_path / "copy") is not None


def test_links_that_a_copy_turned_into_directories_are_replaced(tmp_path: Path) -> None:
    run = stopped_after(64, tmp_path / "runs")
    latest = run / "checkpoints" / "latest"
    target = latest.resolve()
    latest.unlink()
    shutil.copytree(target, latest)
    resumed = Run.resume(RunDirectory(run))
    resumed.train()
    assert latest.is_symlink()
