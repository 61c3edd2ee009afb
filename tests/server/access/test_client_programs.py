"""Two programs with one client id are detected and named; a restart is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.clients import join_request
from tests.server.conftest import THREADS

from rl4sys.server import TrainingService
from rl4sys.server.access.caller import Caller
from rl4sys.server.access.client_programs import ClientPrograms
from rl4sys.wire.generated import training_pb2

HERE, THERE = "ipv4:10.0.0.1:4000", "ipv4:10.0.0.2:5000"


def warning_after(*calls: tuple[float, int, str], at: float | None = None) -> str:
    programs = ClientPrograms("sensor")
    for now, epoch, peer in calls:
        programs.note(epoch, peer, now)
    return programs.warning(calls[-1][0] if at is None else at)


def test_two_epochs_that_call_in_turn_are_two_programs() -> None:
    warning = warning_after((0, 1, HERE), (1, 2, THERE), (2, 1, HERE))
    assert all(word in warning for word in ("'sensor'", HERE, THERE, "client_id"))


def test_a_restart_is_not_reported() -> None:
    assert warning_after((0, 1, HERE), (1, 1, HERE), (2, 2, HERE), (3, 2, HERE), (4, 2, HERE)) == ""


def test_an_epoch_that_returns_after_more_than_a_minute_is_not_reported() -> None:
    assert warning_after((0, 1, HERE), (1, 2, THERE), (61, 1, HERE)) == ""


def test_a_client_of_an_earlier_version_has_no_epoch_and_is_not_reported() -> None:
    assert warning_after((0, 0, HERE), (1, 2, THERE), (2, 0, HERE), (3, 2, THERE)) == ""


def test_the_first_of_three_programs_is_still_known() -> None:
    assert HERE in warning_after((0, 1, HERE), (1, 2, THERE), (2, 3, THERE), (3, 1, HERE))


def test_the_warning_ends_a_minute_after_one_program_does() -> None:
    calls = (0, 1, HERE), (1, 2, THERE), (2, 1, HERE), (50, 1, HERE)
    assert warning_after(*calls, at=62.0)
    assert warning_after(*calls, at=62.1) == ""


def test_status_and_reports_have_the_warning_and_the_log_has_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with TrainingService(tmp_path, THREADS) as service:
        sessions = {}
        for epoch, peer in ((1, HERE), (2, THERE)):
            request = join_request("sensor")
            request.epoch = epoch
            sessions[peer] = service.join(request, Caller(peer=peer)).session
        replies = [
            service.report(training_pb2.ReportRequest(session=sessions[peer]), Caller(peer=peer))
            for peer in (HERE, THERE, HERE)
        ]
        (client,) = service.current_status().clients
    assert all(HERE in reply.warning and THERE in reply.warning for reply in replies)
    assert client.warning == replies[0].warning
    assert [record.message for record in caplog.records if "Two programs" in record.message] == [client.warning]
