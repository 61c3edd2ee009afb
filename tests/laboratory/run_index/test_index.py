from __future__ import annotations

import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
import torch

from experiments.runs import PPO, small
from laboratory.example_runs import stopped_after, train, written
from rl4sys.experiments import MetricRecord, Run, RunDirectory
from rl4sys.laboratory.run_index.index import FILE, Index, IndexBusy, discard, open_index, root_of
from rl4sys.laboratory.run_index.index_logger import index_run
from rl4sys.laboratory.run_index.records import Status
from rl4sys.run_finder import runs_below

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def statuses(root: Path) -> dict[str, str]:
    with open_index(root) as index:
        return {record.id: str(record.status) for record in index.select()}


class Onlooker:
    """A logger that reads the index at every record."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.seen: list[tuple[str, int, float | None]] = []

    def log(self, record: MetricRecord) -> None:
        with Index(self._root) as index:
            self.seen += [(str(run.status), run.steps, run.last) for run in index.select()]

    def close(self) -> None:
        pass


def test_a_run_is_in_the_index_from_its_start_to_its_end() -> None:
    run = Run.create(small(PPO, Path("runs"), seed=3))
    onlooker = Onlooker(Path("runs"))
    with index_run(run.directory.path) as index_logger:
        result = run.train([index_logger, onlooker])
    assert onlooker.seen[0][:2] == ("running", 0)
    assert onlooker.seen[-1] == ("running", 256, result.evaluation)
    with Index(Path("runs")) as index:
        (record,) = index.select()
    manifest = run.directory.read_manifest()
    assert (record.status, record.steps, record.total, record.seed) == (Status.FINISHED, 256, 256, 3)
    assert (record.best, record.last) == (result.best, result.evaluation)
    assert (record.algorithm, record.environment, record.name) == ("ppo", "CartPole-v1", run.config.name)
    assert record.config == manifest["config"] == run.config.digest()
    assert (record.git, record.dirty) == ((manifest["git"] or {}).get("revision"), (manifest["git"] or {}).get("dirty"))
    assert record.id == run.directory.path.name


def test_the_index_logger_writes_what_a_rebuild_reads() -> None:
    train(Path("runs"))
    stopped_after(96, Path("runs"), seed=1)
    with Index(Path("runs")) as index:
        hooked = [replace(record, stamp=0) for record in index.select()]
    discard(Path("runs"))
    with open_index(Path("runs")) as index:
        assert [replace(record, stamp=0) for record in index.select()] == hooked
    assert sorted(record.status for record in hooked) == [Status.FINISHED, Status.INTERRUPTED]


def test_a_failed_run_has_its_cause() -> None:
    run = Run.create(small(PPO, Path("runs")))

    def fail() -> bool:
        if run.steps >= 96:
            raise FloatingPointError("the loss is not a number")
        return False

    with pytest.raises(FloatingPointError), index_run(run.directory.path) as index_logger:
        run.train([index_logger], fail)
    with open_index(Path("runs")) as index:
        (record,) = index.select()
    assert (record.status, record.cause) == (Status.FAILED, "FloatingPointError: the loss is not a number")
    assert record.resume_command(Path("runs")) == f"rl4sys resume runs/{record.id}"


def test_a_resumed_run_keeps_its_creation_time() -> None:
    path = stopped_after(96, Path("runs"))
    with open_index(Path("runs")) as index:
        (before,) = index.select()
    with index_run(path) as index_logger:
        Run.resume(RunDirectory(path)).train([index_logger])
    with open_index(Path("runs")) as index:
        (after,) = index.select()
    assert (before.status, after.status) == (Status.INTERRUPTED, Status.FINISHED)
    assert before.created == after.created


def test_runs_that_come_and_go_without_the_index_are_noticed() -> None:
    written(Path("runs/a"), [1.0])
    written(Path("runs/sweep/trial/b"), [2.0], finished=False)
    assert statuses(Path("runs")) == {"a": "finished", "sweep/trial/b": "interrupted"}
    shutil.rmtree("runs/a")
    written(Path("runs/c"), [3.0])
    shutil.copy("runs/c/result.json", "runs/sweep/trial/b/result.json")
    assert statuses(Path("runs")) == {"c": "finished", "sweep/trial/b": "finished"}


HOLDER = """
import fcntl, os
descriptor = os.open("runs/a", os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print(flush=True)
input()
"""


def test_a_run_without_a_process_file_is_running_while_it_is_locked() -> None:
    written(Path("runs/a"), [1.0], finished=False)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    during = statuses(Path("runs"))
    holder.communicate(b"\n")
    assert (during, statuses(Path("runs"))) == ({"a": "running"}, {"a": "interrupted"})


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place : place + 64] = bytes(byte ^ 0xFF for byte in data[place : place + 64])
    path.write_bytes(data)


@pytest.mark.parametrize("harm", ["garbage", "header", "page", "cut", "empty", "missing", "other columns"])
def test_a_damaged_index_is_rebuilt(harm: str) -> None:
    for number in range(60):
        written(Path(f"runs/run-{number:02d}"), [float(number)])
    expected = statuses(Path("runs"))
    file = Path("runs") / FILE
    match harm:
        case "garbage":
            file.write_bytes(b"this is no database" * 500)
        case "header":
            flip(file, 0)
        case "page":
            flip(file, 4096)
        case "cut":
            file.write_bytes(file.read_bytes()[:5000])
        case "empty":
            file.write_bytes(b"")
        case "missing":
            file.unlink()
        case _:
            with sqlite3.connect(file) as database:
                database.execute("DROP TABLE runs")
                database.execute("CREATE TABLE runs (id)")
            database.close()
    reported: list[str] = []
    with open_index(Path("runs"), reported.append) as index:
        assert {record.id: str(record.status) for record in index.select()} == expected
    assert any("is damaged" in text for text in reported) == (harm not in ("empty", "missing"))


def test_a_damaged_index_that_another_process_replaced_is_not_replaced_again() -> None:
    written(Path("runs/run"), [1.0])
    file = Path("runs") / FILE
    file.write_bytes(b"this is no database" * 500)
    new: list[BinaryIO] = []

    def tell(text: str) -> None:
        """Another process finds the same damage and replaces the index first."""
        if not new:
            open_index(Path("runs")).close()
            new.append(file.open("rb"))

    with open_index(Path("runs"), tell) as index, new[0]:
        assert [record.id for record in index.select()] == ["run"]
        assert os.path.samestat(os.fstat(new[0].fileno()), file.stat())


def test_a_run_that_is_removed_during_the_search_does_not_affect_others() -> None:
    for name in ("a", "b", "c"):
        written(Path("runs") / name, [1.0])

    class Vanishing(dict[str, int]):
        """Known runs, asked just before the modification time of a run is read."""

        def __contains__(self, id_: object) -> bool:
            if id_ == "b":
                shutil.rmtree("runs/b", ignore_errors=True)
            return True

    assert sorted(runs_below(Path("runs"), Vanishing(), print)) == ["a", "c"]


def test_an_unreadable_directory_is_reported_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    written(Path("runs/a"), [1.0])
    Path("runs/secret").mkdir()
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if path.name == "secret":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    reported: list[str] = []
    with open_index(Path("runs"), reported.append) as index:
        assert [record.id for record in index.select()] == ["a"]
    assert reported == ["skipped: no permission to read runs/secret"]


WRITER = """
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from rl4sys.laboratory.run_index.index import Index
from rl4sys.laboratory.run_index.records import read_record
root, mine, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
record = read_record(root, "run")
sys.stdin.readline()
for number in range(count):
    with Index(root) as index:
        index.put([replace(record, id=f"{mine}-{number % 40}", steps=number)])
"""


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing() -> None:
    written(Path("runs/run"), [1.0])
    count, names = 200, ("a", "b", "c")
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, "runs", name, str(count)], stdin=subprocess.PIPE, text=True)
        for name in names
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=120) and writer.returncode for writer in writers] == [0, 0, 0]
    with Index(Path("runs")) as index:
        index.check()
        steps = {record.id: record.steps for record in index.select()}
    assert steps == {f"{name}-{place}": count - 40 + place for name in names for place in range(40)}


@pytest.mark.parametrize("harm", ["a directory", "locked", "garbage"])
def test_training_continues_without_an_index(harm: str, caplog: pytest.LogCaptureFixture) -> None:
    Path("runs").mkdir()
    blocker = None
    if harm == "a directory":
        Path("runs", FILE).mkdir()
    elif harm == "garbage":
        Path("runs", FILE).write_bytes(b"this is no database" * 500)
    else:
        Index(Path("runs")).close()
        blocker = sqlite3.connect(Path("runs", FILE), isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        path = train(Path("runs"))
    if blocker is not None:
        blocker.close()
    warnings = [record.message for record in caplog.records if "index of runs" in record.message]
    assert len(warnings) == 1
    assert json.loads((path / "result.json").read_text())["finished"]
    assert statuses(Path("runs")) == {path.name: "finished"}


def test_a_run_belongs_to_runs_or_to_the_directory_around_it() -> None:
    assert root_of(Path("runs/sweep/trial/x")) == Path("runs")
    assert root_of(Path("runs/x").absolute()) == Path("runs")
    assert root_of(Path("elsewhere/x")) == Path("elsewhere")
    written(Path("elsewhere/sweep/x"))
    open_index(Path("elsewhere")).close()
    assert root_of(Path("elsewhere/sweep/x")) == Path("elsewhere").resolve()


def test_an_index_that_stays_locked_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    written(Path("runs/a"), [1.0])
    monkeypatch.setitem(Index.__init__.__kwdefaults__, "timeout", 0.05)
    Index(Path("runs")).close()
    with closing(sqlite3.connect(Path("runs", FILE), isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexBusy, match="try again"):
            open_index(Path("runs"))
