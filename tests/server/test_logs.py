from __future__ import annotations

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.server.loopback import StubTransport

from rl4sys.server import GrpcServer, InProcessTransport, ServerOptions, ServiceOptions, TrainingService
from rl4sys.server.logs import FILE, log_again, send_logs, working_for
from rl4sys.server.workers.events import Logged, read_event, write_event
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

_log = logging.getLogger("rl4sys.server.test")


class Written:
    """The standard error output so far."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture, self._text = capture, ""

    @property
    def text(self) -> str:
        self._text += self._capture.readouterr().err
        return self._text

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Written:
    return Written(capsys)


def test_a_json_line_has_its_message_and_its_fields(written: Written) -> None:
    with send_logs("json", debug=False, directory=None):
        _log.info("Client %s\njoined.", "a", extra={"client": "a", "version": 3, "password": "x"})
        try:
            raise ValueError("no")
        except ValueError:
            _log.exception("It failed.")
    first, second = written.lines()
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "INFO",
        "logger": "rl4sys.server.test",
        "message": "Client a\njoined.",
        "client": "a",
        "version": 3,
    }
    assert "ValueError: no" in second["exception"]


def test_debug_shows_more_lines_of_rl4sys_but_not_of_libraries(written: Written) -> None:
    for debug in (False, True):
        with send_logs("json", debug=debug, directory=None):
            _log.debug("ours")
            logging.getLogger("asyncio").debug("theirs")
    assert [line["message"] for line in written.lines()] == ["ours"]


def test_the_log_file_has_the_same_lines_and_a_size_limit(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl4sys.server.logs._FILE_BYTES", 2_000)
    with send_logs("text", debug=False, directory=tmp_path / "data"):
        for number in range(200):
            _log.info("Line %d.", number)
    files = sorted((tmp_path / "data").iterdir())
    assert [path.name for path in files] == [FILE, *(f"{FILE}.{number}" for number in (1, 2, 3))]
    assert all(path.stat().st_size <= 2_000 for path in files)
    assert files[0].read_text().splitlines()[-1] == written.text.splitlines()[-1]


def test_earlier_handlers_are_restored(written: Written) -> None:
    handlers, level = logging.getLogger().handlers[:], logging.getLogger("rl4sys").level
    with send_logs("text", debug=True, directory=None):
        pass
    assert logging.getLogger().handlers == handlers
    assert logging.getLogger("rl4sys").level == level


def test_a_worker_line_has_the_format_of_the_host_and_names_its_learner(written: Written) -> None:
    pipe = io.BytesIO()
    write_event(pipe, Logged(1.5, logging.WARNING, "rl4sys.server.workers.fold", "Odd.", "Traceback", {"version": 2}))
    pipe.seek(0)
    line = read_event(pipe)
    assert isinstance(line, Logged)
    with send_logs("json", debug=False, directory=None):
        log_again(line, "a")
        log_again(Logged(1.5, logging.DEBUG, "rl4sys", "hidden"), "a")
    assert written.lines() == [
        {
            "time": "1970-01-01T00:00:01.500Z",
            "level": "WARNING",
            "logger": "rl4sys.server.workers.fold",
            "message": "Odd.",
            "learner": "a",
            "version": 2,
            "exception": "Traceback",
        }
    ]
    with send_logs("text", debug=False, directory=None):
        log_again(line, "a")
        with working_for("b"):
            _log.info("Here.")
    text = written.text.splitlines()
    assert text[-3].endswith("WARNING rl4sys.server.workers.fold [learner a]: Odd.")
    assert text[-2] == "Traceback"
    assert text[-1].endswith("INFO rl4sys.server.test [learner b]: Here.")


@pytest.mark.parametrize("workers", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_worker_lines_arrive_with_the_name_of_the_learner(written: Written, tmp_path: Path, workers: Any) -> None:
    with send_logs("json", debug=False, directory=None):
        for _ in range(2):
            with TrainingService(tmp_path, ServiceOptions(workers)) as service:
                client = ScriptedClient(InProcessTransport(service), join_request("a"))
                client.push(range(4))
                eventually(lambda: service.current_status().learners[0].updates >= 1)
            (checkpoint,) = (tmp_path / "learners" / "a" / "checkpoints").glob("0*")
            (checkpoint / "manifest.json").write_text("{}")
    worker = [line for line in written.lines() if line["logger"] == "rl4sys.server.workers.fold"]
    assert [(line["level"], line["learner"]) for line in worker] == [("WARNING", "a")]
    assert {"client": "a", "learner": "a", "version": 0}.items() <= next(
        line for line in written.lines() if line["logger"] == "rl4sys.server.service.training_service"
    ).items()


def test_no_token_is_ever_logged(written: Written, tmp_path: Path) -> None:
    good, bad = "correct-horse-battery", "wrong-horse-battery-1"
    (tmp_path / "tokens").write_text(f"{good} a\n")
    with send_logs("json", debug=True, directory=tmp_path / "data"):
        options = ServerOptions(
            "127.0.0.1:0", tmp_path / "data", tmp_path / "tokens", service=ServiceOptions("threads")
        )
        server = GrpcServer(options)
        ScriptedClient(StubTransport(server.port, good), join_request("a")).push([0])
        for token in (bad, good):
            with pytest.raises(CallFailed):
                StubTransport(server.port, token).join(join_request("b"), 5.0)
        StubTransport(server.port, good).status(status_pb2.StatusRequest(), 5.0)
        (tmp_path / "tokens").write_text(f"{good} a b=c\n")
        with pytest.raises(CallFailed):
            StubTransport(server.port, good).status(status_pb2.StatusRequest(), 5.0)
        server.drain()
    everything = written.text + (tmp_path / "data" / FILE).read_text()
    assert "Client a joined" in everything
    assert "unknown option" in everything
    assert good not in everything
    assert bad not in everything
