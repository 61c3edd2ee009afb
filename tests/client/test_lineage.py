"""Versions never go back: what a client does when the server offers an older version or another history."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, some_weights
from tests.client.waiting import until

from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2


def serving(lineage: str, versions: int, replaced: tuple[str, ...] = ()) -> FakeServer:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(lineage=lineage, replaced_lineages=replaced)
    for seed in range(1, versions + 1):
        server.publish(some_weights(server.spec, seed))
    return server


def restarted(server: FakeServer, lineage: str, versions: int, replaced: tuple[str, ...] = ()) -> None:
    """The server comes back with other data."""
    server.restart(serving(lineage, versions, replaced))


def test_a_lower_version_of_the_same_lineage_is_never_taken() -> None:
    server = serving("a", 5)
    with agent_on(server) as agent:
        restarted(server, "a", 2)
        until(lambda: len(server.joins) >= 2 and agent.health().connected)
        server.publish(some_weights(server.spec, 9))
        until(lambda: agent.health().versions_not_taken >= 1)
        assert agent.health().version == 5
        for seed in range(4, 7):
            server.publish(some_weights(server.spec, seed))
        until(lambda: agent.health().version == 6)
        assert agent._governor.snapshot is not None
        assert agent._governor.snapshot.weights.tobytes() == some_weights(server.spec, 6).tobytes()


def test_a_restarted_client_does_not_fall_behind_its_cache(tmp_path: Path) -> None:
    with agent_on(serving("a", 5), cache=str(tmp_path)):
        pass
    server = serving("a", 2)
    with agent_on(server, cache=str(tmp_path)) as agent:
        assert (agent.health().version, agent.health().lineage) == (5, "a")
        assert (server.joins[0].have, server.joins[0].lineage) == (5, "a")
        assert server.joins[0].epoch != 0


def test_a_cached_policy_is_patched_and_not_pulled_in_full(tmp_path: Path) -> None:
    server = serving("a", 2)
    with agent_on(server, cache=str(tmp_path)):
        pass
    server.publish(some_weights(server.spec, 3))
    with agent_on(server, cache=str(tmp_path)) as agent:
        until(lambda: agent.health().version == 3)


def test_another_lineage_is_not_followed_and_nothing_is_recorded() -> None:
    server = serving("a", 3)
    with agent_on(server) as agent, agent.episode() as episode:
        restarted(server, "b", 7)
        until(lambda: agent.health().lineage_problem is not None)
        steps(episode, 4)
        episode.end(seen(4))
        health = agent.health()
        assert health.version == 3
        assert health.unrecorded_decisions == 4
        assert "keeps its policy and records nothing" in str(health.lineage_problem)
        assert "version 3 of a" in str(health.lineage_problem)
    assert server.segments() == []


def test_a_client_without_a_server_history_keeps_its_cached_policy(tmp_path: Path) -> None:
    with agent_on(serving("a", 3), cache=str(tmp_path)):
        pass
    with agent_on(serving("b", 9), cache=str(tmp_path)) as agent:
        assert agent.health().version == 3
        assert agent.health().lineage_problem is not None
    with agent_on(serving("a", 4), cache=str(tmp_path)) as agent:
        until(lambda: agent.health().version == 4)


def test_a_lineage_that_an_operator_replaced_is_followed() -> None:
    server = serving("a", 5)
    with agent_on(server) as agent:
        restarted(server, "b", 1, replaced=("z", "a"))
        until(lambda: (agent.health().version, agent.health().lineage) == (1, "b"))
        assert agent.health().lineage_problem is None


def test_a_client_follows_once_an_operator_accepts_the_lineage(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serving("a", 3)
    with agent_on(server) as agent:
        restarted(server, "b", 2)
        until(lambda: agent.health().lineage_problem is not None)
        server.reply.replaced_lineages.append("a")
        agent._watcher.renew()
        until(lambda: (agent.health().version, agent.health().lineage) == (2, "b"))
        with agent.episode() as episode:
            steps(episode, 2)
            episode.end(seen(2))
        assert agent.flush()
    assert len(server.segments()) == 1


def test_experience_of_a_lost_lineage_waits_for_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl4sys.client.courier._FOREIGN_SECONDS", 0.01)
    server = serving("a", 3)
    with agent_on(server, send_interval=60.0) as agent:
        with agent.episode() as episode:
            steps(episode, 2)
            episode.end(seen(2))
        restarted(server, "b", 2)
        until(lambda: agent.health().lineage_problem is not None)
        assert not agent.flush(0.2)
        assert agent.health().backlog == 1
        restarted(server, "a", 3)
        agent._watcher.renew()
        until(lambda: agent.health().lineage_problem is None)
        assert agent.flush()
    assert len(server.segments()) == 1


def test_servers_without_lineages_are_followed_in_any_order() -> None:
    server = serving("", 4)
    with agent_on(server) as agent:
        restarted(server, "", 1)
        until(lambda: agent.health().version == 1)


def test_a_cached_policy_for_other_observations_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = serving("a", 1)
    with agent_on(server, cache=str(tmp_path)):
        pass

    def away(call: str) -> None:
        raise CallFailed(Code.UNAVAILABLE, "away")

    server.before = away
    with agent_on(server, lambda observation: 0, cache=str(tmp_path), observation=9, timeout=0.05) as agent:
        assert agent.health().version is None
    assert "not what this client asked for" in caplog.text
