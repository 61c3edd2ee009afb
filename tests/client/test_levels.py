"""Levels of a client: how much of it works, to tell what each part costs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, some_weights
from tests.client.waiting import until

from rl4sys.client import Agent, Episode
from rl4sys.client.client_level import ClientLevel
from rl4sys.client.profiler import ProfileOrder, Profiler, bucket_time, time_bucket


def decided_at(level: str) -> tuple[FakeServer, Agent]:
    """An agent that took 20 decisions at a level."""
    server = FakeServer()
    agent = agent_on(server, lambda observation: 3)
    agent.level = level
    with agent.episode() as episode:
        steps(episode, 20)
        episode.end(seen(20))
    agent.flush(5.0)
    return server, agent


def test_off_lets_the_fallback_decide_and_records_nothing() -> None:
    server, agent = decided_at("off")
    health = agent.health()
    agent.close()
    assert (health.off, health.decisions, health.fallback_decisions) == ("level", 0, 20)
    assert server.segments() == []


def test_decide_lets_the_policy_decide_and_records_nothing() -> None:
    server, agent = decided_at("decide")
    health = agent.health()
    agent.close()
    assert (health.off, health.decisions, health.unrecorded_decisions) == ("", 20, 20)
    assert server.segments() == []


def test_record_encodes_decisions_and_drops_them_with_a_count() -> None:
    server, agent = decided_at("record")
    health = agent.health()
    agent.close()
    assert health.drops == {"not_sent_at_level_record": 1}
    assert server.segments() == []


def test_full_sends_what_was_recorded() -> None:
    server, agent = decided_at("full")
    agent.close()
    assert sum(segment.steps for segment in server.segments()) == 20


def test_only_the_full_level_takes_new_versions() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        agent.level = "decide"
        server.publish(some_weights(server.spec, 1))
        server.give_order("follow", 1)
        until(lambda: agent.health().control_sequence == 1)
        assert agent.health().version == 0
        agent.level = "full"
        server.publish(some_weights(server.spec, 2))
        until(lambda: agent.health().version == 2)


def test_off_without_a_fallback_is_refused() -> None:
    with agent_on(FakeServer()) as agent, pytest.raises(ValueError, match="Pass `fallback=` to connect"):
        agent.level = "off"


def test_every_round_has_each_level_once_in_random_order() -> None:
    rounds = ProfileOrder(60.0, 1).rounds()
    assert all({level for level, _ in blocks} == set(ClientLevel) for blocks in rounds)
    assert all(0.5 <= seconds <= 2.0 for blocks in rounds for _, seconds in blocks)
    assert len({tuple(level for level, _ in blocks) for blocks in rounds}) > 1


def profiled(agent: Agent, episode: Episode) -> list[dict[str, Any]]:
    """The records of a profile during which the system decides ten times in every wait."""
    records: list[dict[str, Any]] = []
    profiler = Profiler(
        ProfileOrder(10.0, 0), records.append, wait=lambda seconds: steps(episode, 10), longest_wait=1.0
    )
    profiler.add(agent)
    steps(episode, 1)
    profiler.run()
    return records


def test_a_profile_measures_every_level_and_returns_to_full() -> None:
    with agent_on(FakeServer(), lambda observation: 3) as agent, agent.episode() as episode:
        lines = profiled(agent, episode)
        assert agent.level is ClientLevel.FULL
        steps(episode, 10)
        assert agent.shared.times.each == []
    blocks = [line for line in lines if line["kind"] == "block"]
    assert {block["level"] for block in blocks} == {"off", "decide", "record", "full"}
    assert all(block["decisions"] == sum(block["times"].values()) == 10 for block in blocks)
    assert lines[-1] == {"kind": "end", "problem": None}
    assert int(str(lines[-2]["nanoseconds"])) > 0


def test_a_profile_of_a_system_without_a_fallback_says_so() -> None:
    with agent_on(FakeServer()) as agent, agent.episode() as episode:
        assert "pass `fallback=`" in str(profiled(agent, episode)[-1]["problem"])


def test_a_profile_of_a_system_that_never_decides_says_so() -> None:
    records: list[dict[str, Any]] = []
    with agent_on(FakeServer(), lambda observation: 3) as agent:
        profiler = Profiler(ProfileOrder(10.0, 0), records.append, longest_wait=0.0)
        profiler.add(agent)
        profiler.run()
    assert "took no decision" in records[-1]["problem"]


def test_a_profile_ends_when_an_operator_switches_the_policy_off() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3) as agent, agent.episode() as episode:
        server.give_order("off", 1)
        until(lambda: agent.health().off == "control")
        assert profiled(agent, episode)[-1]["problem"] == (
            "its policy does not decide, because an operator ordered it off"
        )


def test_decision_times_are_kept_to_two_percent() -> None:
    for nanoseconds in (900, 12_345, 6_000_000):
        assert bucket_time(time_bucket(nanoseconds)) == pytest.approx(nanoseconds, rel=0.022)
