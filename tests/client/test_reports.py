"""Reports to the server, what its replies change, and how episodes are thinned."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer
from tests.client.test_recording import shape_of
from tests.client.waiting import until

from rl4sys.client import Agent, Ending
from rl4sys.client.decision_times import BUCKETS, DecisionTimes
from rl4sys.client.thinning import Thinning, fleet_phase
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2


def reporting(**reply: object) -> FakeServer:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(report_seconds=0.01, lineage="a", **reply)  # type: ignore[arg-type]
    return server


def run_episodes(agent: Agent, count: int, length: int = 1) -> None:
    for _ in range(count):
        with agent.episode() as episode:
            steps(episode, length)
            episode.end(seen(length))


def test_a_client_reports_its_health() -> None:
    server = reporting()
    with agent_on(server, lambda observation: 1) as agent:
        run_episodes(agent, 3)
        agent.episode().act([float("nan")] * 8)
        seen_by_server = len(server.reports)
        until(lambda: len(server.reports) >= seen_by_server + 2)
        report = server.reports[-1].report
        assert server.reports[-1].epoch == server.joins[0].epoch != 0
    assert (report.version, report.lineage, report.mode) == (0, "a", "explore")
    assert (report.decisions, report.fallback_decisions, report.bad_inputs) == (4, 1, 1)
    assert report.open_episodes == 1
    assert sum(report.decision_time) == 4
    assert len(report.decision_time) <= 24
    assert report.uptime_seconds > 0


def test_a_reply_to_a_report_is_obeyed() -> None:
    server = reporting()
    server.report_reply = training_pb2.ReportReply(
        control=training_pb2.Control(mode=training_pb2.CONTROL_MODE_OFF, sequence=5),
        record_share=0.25,
        warning="Another program uses the client id 'test'.",
    )
    with agent_on(server, lambda observation: 1) as agent:
        until(lambda: agent.health().warning is not None)
        health = agent.health()
        assert (health.off, health.record_share, health.control_sequence) == ("control", 0.25, 5)
        assert health.warning == "Another program uses the client id 'test'."
        server.report_reply = training_pb2.ReportReply()
        until(lambda: agent.health().warning is None)
        until(lambda: server.reports[-1].report.off == "control")


def test_a_server_that_takes_no_reports_is_asked_once() -> None:
    server = reporting()
    asked: list[str] = []

    def unknown(call: str) -> None:
        asked.append(call)
        if call == "report":
            raise CallFailed(Code.UNIMPLEMENTED, "unknown method")

    server.before = unknown
    with agent_on(server) as agent:
        until(lambda: "report" in asked)
        run_episodes(agent, 20)
        assert agent.flush()
        assert asked.count("report") == 1
        assert agent.health().connected


def test_a_lost_session_is_joined_again_after_a_report() -> None:
    server = reporting()
    with agent_on(server):
        until(lambda: bool(server.reports))
        server.restart()
        until(lambda: len(server.joins) >= 2)
        count = len(server.reports)
        until(lambda: len(server.reports) > count)


def test_another_lineage_is_reported() -> None:
    server = reporting()
    with agent_on(server):
        other = reporting()
        other.reply.lineage = "b"
        server.restart(other)
        until(lambda: bool(server.reports) and server.reports[-1].report.off == "other_lineage")
        assert server.reports[-1].report.lineage == "a"


@pytest.mark.parametrize("share", [0.5, 0.3, 0.125])
def test_episodes_are_thinned_evenly(share: float) -> None:
    thinning = Thinning()
    kept = [thinning.keeps(share) for _ in range(240)]
    assert sum(kept) == pytest.approx(240 * share, abs=1.01)
    gaps = [index for index, keep in enumerate(kept) if keep]
    assert max(b - a for a, b in pairwise(gaps)) <= round(1 / share) + 1


def test_clients_of_one_learner_begin_at_different_turns() -> None:
    assert fleet_phase("a") == 0xE8B7BE43 / 2**32
    first = sum(Thinning(fleet_phase(f"client-{number}")).keeps(0.1) for number in range(1_000))
    assert first == pytest.approx(100, abs=30)


def test_thinned_episodes_act_and_are_not_recorded() -> None:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(record_share=0.25)
    with agent_on(server) as agent:
        run_episodes(agent, 40, length=3)
        assert agent.flush()
        health = agent.health()
        assert (health.decisions, health.thinned_episodes, health.unrecorded_decisions) == (120, 30, 90)
        assert (health.drops, health.late_rewards) == ({}, 0)
    assert len(server.segments()) == 10
    assert all(segment.steps == 3 for segment in server.segments())


def test_the_share_in_a_reply_to_push_counts() -> None:
    server = FakeServer()
    server.reply.record_share = 0.5
    with agent_on(server) as agent:
        run_episodes(agent, 1)
        assert agent.flush()
        assert agent.health().record_share == 0.5
        server.reply.record_share = 0.0
        run_episodes(agent, 4)
        assert agent.flush()
        assert agent.health().record_share == 1.0


def test_an_endless_episode_is_thinned_by_spans() -> None:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(record_share=0.5)
    with agent_on(server, reward_window=0) as agent:
        episode = agent.episode()
        steps(episode, 8 * 1024)
        episode.end(seen(8 * 1024))
        assert agent.flush()
        assert agent.health().thinned_episodes == 4
    recorded = server.segments()
    assert sum(segment.steps for segment in recorded) == pytest.approx(4 * 1024, abs=256)
    cuts = [segment for segment in recorded if segment.ending is not Ending.CONTINUES]
    assert {segment.ending for segment in cuts[:3]} == {Ending.TRUNCATED}
    for segment in recorded:
        rows = segment.observation["observation"][:, 0]
        assert rows.tolist() == list(range(segment.start, segment.start + segment.steps + 1))


def test_recording_starts_again_when_the_server_asks_for_all() -> None:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(record_share=0.001)
    with agent_on(server) as agent:
        run_episodes(agent, 3, length=2)
        server.reply.record_share = 1.0
        agent._governor.ask_share(1.0)
        run_episodes(agent, 2, length=2)
        assert agent.flush()
    assert [shape[:2] for shape in shape_of(server.segments())] == [(0, 2)] * 3


def test_times_are_counted_in_powers_of_two() -> None:
    times = DecisionTimes()
    for microseconds in (0, 1, 3, 4, 1000, 10**9):
        times.add(1000 * microseconds)
    assert times.counts[:4] == [1, 1, 1, 1]
    assert times.counts[10] == 1
    assert (times.counts[BUCKETS - 1], len(times.counts)) == (1, BUCKETS)
