"""Hosts of trials prepare a process before they have an order, and leave nothing behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent
from rl4sys.laboratory.trials.trial_host import TrialHost, decode_events
from rl4sys.run_files import OUTPUT

TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    monkeypatch.setenv("RL4SYS_TEST", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def order(place: Path, task: str) -> str:
    launch = {"key": "one", "task": f"laboratory.trials.tasks:{task}", "values": {}, "directory": str(place)}
    return json.dumps({"launch": launch, "is_apart": False})


def until_end(host: TrialHost) -> list[TrialEvent]:
    found: list[TrialEvent] = []
    while not (found and isinstance(found[-1], Ended)):
        found += decode_events(host.events(1.0))
    return found


def children_of(pid: int) -> set[int]:
    """The processes that the main thread of a process has started."""
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def host_and_prepared() -> tuple[TrialHost, int]:
    """A host, and the process that it has started; other tests may have left helpers of multiprocessing beside it."""
    before = children_of(os.getpid())
    host = TrialHost(threads=1)
    [prepared] = children_of(os.getpid()) - before
    return host, prepared


def working_directories(tmp_path: Path) -> list[Path]:
    return list((tmp_path / f"rl4sys-trials-{os.getuid()}").iterdir())


def test_the_prepared_process_runs_the_order_and_prints_beside_the_trial(tmp_path: Path) -> None:
    host, prepared = host_and_prepared()
    host.start(order(tmp_path / "trial", "wait"))
    [report] = decode_events(host.events(60.0))
    assert isinstance(report, Reported)
    assert report.values == {"pid": prepared}
    host.stop()
    assert until_end(host) == [Ended("one", Outcome.STOPPED)]
    assert not working_directories(tmp_path)


def test_a_host_runs_further_orders_and_one_whose_prepared_process_died(tmp_path: Path) -> None:
    host, prepared = host_and_prepared()
    os.kill(prepared, signal.SIGKILL)
    os.waitid(os.P_PID, prepared, os.WEXITED | os.WNOWAIT)
    for name in ("first", "second"):
        host.start(order(tmp_path / name, "look_around"))
        report, ended = until_end(host)
        assert isinstance(report, Reported)
        assert report.values["threads"] == "1"
        assert ended == Ended("one", Outcome.FINISHED)
        assert (tmp_path / name / OUTPUT).read_text() == "hello from a task\n"


def test_a_process_that_gets_no_order_ends_with_its_host(tmp_path: Path) -> None:
    lines = "import tempfile; tempfile.tempdir = {!r}; from rl4sys.laboratory.trials.trial_host import TrialHost; "
    program = lines.format(str(tmp_path)) + "host = TrialHost(threads=1); print(1, flush=True); input()"
    arguments: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **arguments) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        [child] = children_of(parent.pid)
        prepared = os.pidfd_open(child)
        parent.kill()
    ended, _, _ = select.select([prepared], [], [], 60.0)
    os.close(prepared)
    assert ended
    assert (working_directories(tmp_path)[0] / "preparing.log").read_bytes() == b""
    TrialHost(threads=1).end()
    assert not working_directories(tmp_path)
