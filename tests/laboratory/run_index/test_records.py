from __future__ import annotations

import datetime
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from laboratory.example_runs import written
from rl4sys import run_files
from rl4sys.experiments import RunDirectory
from rl4sys.laboratory.run_index.labels import EmptyNote, Labels, LabelsDamaged, WrongTag, change_labels, read_labels
from rl4sys.laboratory.run_index.records import Status, read_record
from rl4sys.laboratory.run_index.training_process import (
    Heartbeat,
    birth_of,
    held,
    is_held,
    read_process,
    this_process,
)


def test_files_have_the_names_that_runs_give_them(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.config == tmp_path / run_files.CONFIG
    assert run.manifest == tmp_path / run_files.MANIFEST
    assert run.metrics == tmp_path / run_files.METRICS
    assert run.result == tmp_path / run_files.RESULT
    assert run.checkpoints == tmp_path / run_files.CHECKPOINTS


def test_progress_is_read_past_damaged_lines(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [3.0, 9.0, 5.0], finished=False)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 350, "metrics": {"evaluation/return": null}, "timing": {}}\n')
        file.write(b'\xff"evaluation/return" spoilt\n{"step": 400, "metrics": {}, "timing": {}}\n')
        file.write(b'{"step": 900, "metrics": {"evaluation/return": 100.0}')
    progress = run_files.read_progress(run)
    assert (progress.steps, progress.best, progress.last) == (400, 9.0, 5.0)


def test_a_process_that_ended_or_whose_pid_was_reused_is_not_alive(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0], finished=False)
    me = this_process(run, now=5.0)
    assert me.is_alive
    assert not replace(me, birth=me.birth + 1).is_alive
    assert not replace(me, pid=2**22 + 1).is_alive
    assert not replace(me, host="another-machine").is_alive
    assert not me.end(6.0, None).is_alive
    assert birth_of(os.getpid()) == me.birth


def test_a_process_on_another_machine_is_alive_while_it_is_heard_of(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0], finished=False)
    there = replace(this_process(run, now=5.0), host="another-machine")
    for seconds, status in ((8.0, "running"), (90.0, "interrupted")):
        there.hear(time.time() - seconds).write(run)
        record = read_record(tmp_path, "run")
        assert (str(record.status), record.host) == (status, "another-machine")
        assert record.is_elsewhere is (status == "running")


def test_a_heartbeat_is_written_until_it_ends(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0], finished=False)
    me = this_process(run, now=5.0)
    heartbeat = Heartbeat(me, run, seconds=0.01)
    deadline = time.monotonic() + 30
    while read_process(run) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    heartbeat.end()
    found = read_process(run)
    assert found is not None
    assert found.hear(5.0) == me.hear(5.0)


def test_the_status_depends_on_the_process_that_trains(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0], finished=False)
    me = this_process(run, now=5.0)
    seen = []
    for process in (me, replace(me, birth=0), me.end(6.0, "RuntimeError: no"), me.end(6.0, None)):
        process.write(run)
        record = read_record(tmp_path, "run")
        seen.append((str(record.status), record.cause, record.created))
    assert seen == [
        ("running", None, 5.0),
        ("interrupted", None, 5.0),
        ("failed", "RuntimeError: no", 5.0),
        ("interrupted", None, 5.0),
    ]
    assert this_process(run, now=9.0).created == 5.0


@pytest.mark.parametrize("name", ["config.yaml", "manifest.json"])
def test_a_run_that_cannot_be_read_has_failed(tmp_path: Path, name: str) -> None:
    run = written(tmp_path / "run", [1.0])
    (run / name).write_bytes(b"{]: \x00")
    record = read_record(tmp_path, "run")
    assert record.status is Status.FAILED
    assert "its files cannot be read: " in (record.cause or "")
    assert record.stamp == 0


def test_damaged_labels_are_reported_and_do_not_affect_the_status(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0])
    for text in ("nonsense", "[]", '{"tags": 5}', '{"notes": [{"x": 1}]}'):
        (run / "labels.json").write_text(text)
        with pytest.raises(LabelsDamaged, match=r"labels.json is damaged .*; repair it, or remove it"):
            read_labels(run)
        record = read_record(tmp_path, "run")
        assert (record.status, record.tags, record.last) == (Status.FINISHED, (), 1.0)


@pytest.mark.parametrize(
    "line", ["[1, 2]", '{"step": "x", "metrics": {}}', '{"step": 900, "metrics": 3}', '{"step": 900}', "\x00\x00"]
)
def test_lines_that_are_not_records_are_skipped(tmp_path: Path, line: str) -> None:
    run = written(tmp_path / "run", [3.0, 5.0], finished=False)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(f'{{"step": 900, "metrics": {{"evaluation/return": "high"}}}}\n{line}\n')
    assert read_record(tmp_path, "run").last == 5.0
    assert run_files.final_metrics(run) == {"evaluation/return": 5.0}


def test_a_note_needs_a_text() -> None:
    with pytest.raises(EmptyNote):
        Labels().noted(" ", datetime.datetime.now(datetime.UTC))


def test_a_damaged_result_is_treated_as_missing(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0])
    (run / "result.json").write_text("{")
    record = read_record(tmp_path, "run")
    assert (record.status, record.last) == (Status.INTERRUPTED, 1.0)


def test_holding_a_run_keeps_others_out(tmp_path: Path) -> None:
    with held(tmp_path) as ours, held(tmp_path) as again:
        assert (ours, again, is_held(tmp_path)) == (True, False, True)
    assert not is_held(tmp_path)


def test_labels_are_added_removed_and_kept(tmp_path: Path) -> None:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    labels = Labels().tagged(["+good", "also", "+bad"]).tagged(["-bad", "-never"]).noted("it’s fine", now)
    labels.write(tmp_path)
    assert read_labels(tmp_path) == labels
    assert labels.tags == ("also", "good")
    assert json.loads((tmp_path / "labels.json").read_text())["notes"] == [
        {"time": "2026-01-02T03:04:05+00:00", "text": "it’s fine"}
    ]


def test_labels_that_are_changed_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    run = written(tmp_path / "run", [1.0])
    second = threading.Thread(target=change_labels, args=(run, lambda old: old.tagged(["second"])))

    def first(old: Labels) -> Labels:
        second.start()
        # It has to wait for the first; if it did not, it would be done by then.
        second.join(timeout=0.2)
        return old.tagged(["first"])

    change_labels(run, first)
    second.join()
    assert read_labels(run).tags == ("first", "second")


@pytest.mark.parametrize("change", ["+", "-", "two words", "--x", ""])
def test_invalid_tags_are_refused(change: str) -> None:
    with pytest.raises(WrongTag, match="is not a tag"):
        Labels().tagged([change])
