"""Profiles that an operator orders through the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.client.agents import agent_on, steps
from tests.client.fake_server import FakeServer
from tests.client.waiting import until

from rl4sys.client import Agent
from rl4sys.client.client_level import ClientLevel
from rl4sys.client.profile_blocks import block_values
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import profile_pb2, training_pb2


def measured_server(sequence: int = 7, seconds: float = 1.0) -> FakeServer:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(report_seconds=0.01)
    order = profile_pb2.ProfileOrder(sequence=sequence, seconds=seconds, seed=1)
    server.report_reply = training_pb2.ReportReply(profile=order)
    return server


@contextmanager
def deciding(server: FakeServer, *, has_fallback: bool = True) -> Iterator[Agent]:
    """An agent with an open episode that has taken a decision."""
    with agent_on(server, (lambda observation: 3) if has_fallback else None) as agent, agent.episode() as episode:
        steps(episode, 1)
        yield agent


def last_progress(server: FakeServer) -> profile_pb2.ProfileProgress:
    return server.reports[-1].profile if server.reports else profile_pb2.ProfileProgress()


def test_a_client_without_a_fallback_reports_why_it_cannot_be_measured() -> None:
    server = measured_server()
    with deciding(server, has_fallback=False) as agent:
        until(lambda: last_progress(server).is_complete)
        assert "pass `fallback=`" in last_progress(server).problem
        assert (agent.level, agent.is_profiled) == (ClientLevel.FULL, False)


def test_a_reply_without_the_order_ends_it_and_the_client_works_as_before() -> None:
    server = measured_server(seconds=600.0)
    with deciding(server) as agent:
        until(lambda: agent.is_profiled)
        server.report_reply = training_pb2.ReportReply()
        until(lambda: last_progress(server).is_complete)
        assert last_progress(server).problem == "it was ended early"
        assert (agent.level, agent.is_profiled) == (ClientLevel.FULL, False)


def test_an_order_is_carried_out_once() -> None:
    server = measured_server()
    with deciding(server, has_fallback=False):
        until(lambda: last_progress(server).is_complete)
        count = len(server.reports)
        until(lambda: len(server.reports) > count + 5)
        assert all(report.profile.is_complete for report in server.reports[count:])
        server.report_reply.profile.sequence = 8
        until(lambda: last_progress(server).sequence == 8)


def test_a_closed_agent_leaves_no_profile_behind() -> None:
    server = measured_server(seconds=600.0)
    with deciding(server) as agent:
        until(lambda: agent.is_profiled)
    until(lambda: not agent.is_profiled)
    assert agent.level is ClientLevel.FULL


def test_blocks_are_reported_until_a_reply_acknowledges_them() -> None:
    server = measured_server(seconds=600.0)
    lost: list[int] = []

    def lose(call: str) -> None:
        if call == "report" and last_progress(server).blocks and len(lost) < 3:
            lost.append(last_progress(server).first_block)
            raise CallFailed(Code.UNAVAILABLE, "the reply is lost")

    server.after = lose
    with agent_on(server, lambda observation: 3) as agent, agent.episode() as episode:

        def acknowledged() -> bool:
            steps(episode, 1)
            return last_progress(server).first_block >= 1

        until(acknowledged)
    assert lost == [0, 0, 0]
    first = next(report.profile for report in server.reports if report.profile.blocks)
    block = block_values(first.blocks[0])
    # Decisions and their times are read one after the other, while the system decides on.
    assert sum(block["times"].values()) == pytest.approx(block["decisions"], rel=0.1)
    assert block["decisions"] > 0
    assert (block["round"], block["level"]) == (0, first.blocks[0].level)
    assert block["seconds"] >= 0.5
