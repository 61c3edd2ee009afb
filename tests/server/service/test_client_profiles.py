"""Orders to clients to measure what they cost: who may give them, how they reach a client, what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, join_request
from tests.server.conftest import THREADS
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport, TrainingService
from rl4sys.server.access.caller import Caller, Role
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import operations_pb2, profile_pb2, training_pb2


class Measured:
    """A client that reports, its operator, and the time."""

    def __init__(self, service: TrainingService, now: list[float]) -> None:
        self.transport, self.now = InProcessTransport(service), now
        self.client = ScriptedClient(self.transport, join_request("a"))
        self.operator = Operator(self.transport)

    def report(self, progress: profile_pb2.ProfileProgress | None = None, epoch: int = 1) -> training_pb2.ReportReply:
        request = training_pb2.ReportRequest(session=self.client.joined.session, epoch=epoch, profile=progress)
        return self.transport.report(request, 5.0)

    def ask(self, client: str = "a", learner: str = "", caller: Caller | None = None, **command: object) -> object:
        request = operations_pb2.ProfileRequest(client=client, learner=learner, **command)  # type: ignore[arg-type]
        return self.operator.service.profile(request, caller or self.operator.caller)

    def begin(self, seconds: float = 30.0, **where: object) -> operations_pb2.ProfileReply:
        reply = self.ask(begin=profile_pb2.ProfileOrder(seconds=seconds, seed=4), **where)  # type: ignore[arg-type]
        assert isinstance(reply, operations_pb2.ProfileReply)
        return reply

    def read(self, sequence: int, have: int = 0) -> operations_pb2.ProfileReply:
        reply = self.ask(read=operations_pb2.ReadProfile(sequence=sequence, have_blocks=have))
        assert isinstance(reply, operations_pb2.ProfileReply)
        return reply


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Measured]:
    now = [100.0]
    with TrainingService(tmp_path, THREADS, lambda: now[0]) as service:
        yield Measured(service, now)


def progress(sequence: int, first: int, *levels: str, **end: object) -> profile_pb2.ProfileProgress:
    blocks = [profile_pb2.ProfileBlock(level=level, seconds=1.0, decisions=10) for level in levels]
    return profile_pb2.ProfileProgress(sequence=sequence, first_block=first, blocks=blocks, **end)  # type: ignore[arg-type]


def refused(measured: Measured, **order: object) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        measured.begin(**order)  # type: ignore[arg-type]
    return failed.value


def test_an_order_reaches_the_client_with_its_next_report_until_it_is_complete(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    order = measured.report().profile
    assert (order.sequence, order.seconds, order.seed) == (sequence, 30.0, 4)
    assert not measured.read(sequence).has_begun
    assert measured.report(progress(sequence, 0, "off", "full")).HasField("profile")
    assert measured.read(sequence).has_begun
    last = progress(sequence, 2, "record", is_complete=True, floor_nanoseconds=1_500)
    assert not measured.report(last).HasField("profile")
    reply = measured.read(sequence, have=1)
    assert [block.level for block in reply.progress.blocks] == ["full", "record"]
    assert (reply.progress.is_complete, reply.progress.problem, reply.progress.floor_nanoseconds) == (True, "", 1_500)


def test_blocks_that_are_reported_again_are_kept_once(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    measured.report(progress(sequence, 0, "off", "decide"))
    measured.report(progress(sequence, 1, "decide", "full"))
    assert [block.level for block in measured.read(sequence).progress.blocks] == ["off", "decide", "full"]


def test_a_client_that_was_restarted_ends_the_profile(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    measured.report(progress(sequence, 0, "off"), epoch=1)
    assert not measured.report(progress(sequence, 0), epoch=2).HasField("profile")
    assert "restarted" in measured.read(sequence).progress.problem


def test_an_order_that_no_one_takes_is_withdrawn(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    measured.now[0] += 61.0
    assert not measured.report().HasField("profile")
    assert "did not take the order" in measured.read(sequence).progress.problem


def test_an_operator_can_end_an_order(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    measured.report(progress(sequence, 0, "off"))
    measured.ask(end=operations_pb2.EndProfile(sequence=sequence))
    assert not measured.report().HasField("profile")
    assert measured.read(sequence).progress.problem == "an operator ended it"
    assert measured.begin().progress.sequence > sequence
    assert [entry.command for entry in measured.operator.audit("a")] == ["profile"] * 3


def test_two_orders_at_once_are_refused(measured: Measured) -> None:
    measured.report()
    measured.begin()
    assert "is being measured already" in str(refused(measured))


def test_what_cannot_be_measured_is_refused_with_the_reason(measured: Measured) -> None:
    assert "has not reported yet" in str(refused(measured))
    measured.report()
    assert refused(measured, client="b").code is Code.NOT_FOUND
    assert refused(measured, learner="shared~x").code is Code.NOT_FOUND
    assert "from 1 to 3600 s" in str(refused(measured, seconds=0.0))
    assert refused(measured, seconds=float("nan")).code is Code.INVALID_ARGUMENT
    measured.now[0] += 61.0
    assert "is not connected: its last call was 61 s ago" in str(refused(measured))


def test_only_operators_may_order_and_read(measured: Measured) -> None:
    measured.report()
    client = Caller(role=Role.CLIENT)
    assert refused(measured, caller=client).code is Code.PERMISSION_DENIED
    with pytest.raises(CallFailed):
        measured.ask(caller=client, read=operations_pb2.ReadProfile(sequence=1))


def test_what_breaks_the_contract_is_cut(measured: Measured) -> None:
    measured.report()
    sequence = measured.begin().progress.sequence
    sent = progress(sequence, 0, "off", "sideways")
    sent.blocks[0].seconds = float("inf")
    sent.blocks[0].times.update(dict.fromkeys(range(2000), 1))
    measured.report(sent)
    (kept,) = measured.read(sequence).progress.blocks
    assert (kept.level, kept.seconds, len(kept.times)) == ("off", 0.0, 1_024)
