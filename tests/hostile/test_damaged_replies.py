"""Replies damaged on purpose: the agent keeps acting with published weights, and reports the damage."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from time import monotonic

import numpy as np
import pytest
from tests.client.agents import agent_on, seen
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.waiting import until
from tests.hostile.damaging_server import DamagingServer, digest
from tests.storms import scaled

from rl4sys.client import BadObservation, ConnectError, retries
from rl4sys.wire.generated import training_pb2

_SECONDS = 60.0


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The delay between two attempts of an agent, shortened."""
    monkeypatch.setattr(retries, "_FIRST", 0.0002)
    monkeypatch.setattr(retries, "_LONGEST", 0.001)
    monkeypatch.setattr(retries, "_LONGEST_ASKED", 0.001)


def live(kind: str, seed: int, lies: int) -> int:
    """Run an agent with a damaging server; returns how many replies were damaged, by kind."""
    server = DamagingServer(kind, seed)
    try:
        agent = agent_on(server, timeout=30, fallback=lambda observation: 0)
    except ConnectError:
        # A refusal is final.
        return sum(server.lies.values())
    with agent:
        deadline = monotonic() + _SECONDS
        while sum(server.lies.values()) < lies and agent.health().stopped is None:
            assert monotonic() < deadline, (kind, seed, server.lies, agent.health())
            with agent.episode() as episode:
                for step in range(20):
                    assert episode.act(seen(step)) in range(4)
                    episode.reward(1.0)
                episode.end(seen(20))
            if kind == "join":
                server.restart()
            snapshot = agent._governor.snapshot
            assert snapshot is None or digest(snapshot.weights) in server.digests, (kind, seed, server.lies)
        health = agent.health()
        if kind in ("news", "pull"):
            assert health.damaged_patches > 0 or health.last_error
        server.honest()
        if health.stopped is None:
            server.learn()
            until(lambda: agent.health().version == server.store.latest, 30.0)
        for thread in agent._threads:
            assert thread.is_alive() or agent.health().stopped is not None
        assert "died" not in (agent.health().last_error or ""), (kind, seed, agent.health().last_error)
    return sum(server.lies.values())


def overflowing(kind: str) -> FakeServer:
    """A server whose policy computes NaN or infinity for every observation."""
    server = FakeServer(small_policy(kind=kind))
    server.publish(np.float32(3e38) * np.sign(some_weights(server.spec)))
    return server


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["join", "push", "pull", "news", "failure"])
def test_an_agent_survives_damaged_replies(kind: str, tally: Callable[[str, int], None]) -> None:
    count = scaled(1_000, 100_000)
    tally("mutated replies", count)
    told, seed = 0, 0
    while told < count:
        told += max(1, live(kind, seed, min(200, count - told)))
        seed += 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_weights_that_overflow_do_not_fail_a_decision(kind: str) -> None:
    with agent_on(overflowing(kind), fallback=lambda observation: 3) as agent, agent.episode() as episode:
        assert agent.health().version == 1
        assert all(episode.act(seen(step)) == 3 for step in range(50))
        assert agent.health().bad_inputs == agent.health().fallback_decisions == 50


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_weights_that_overflow_are_reported_without_a_fallback(kind: str) -> None:
    agent = agent_on(overflowing(kind))
    with agent, agent.episode() as episode, pytest.raises(BadObservation, match="NaN or infinite"):
        episode.act(seen(0))


def test_an_inconsistent_policy_is_never_used() -> None:
    server = FakeServer()
    tensors = tuple(dataclasses.replace(t, shape=t.shape[::-1]) for t in server.spec.program.tensors)
    server.spec = dataclasses.replace(
        server.spec, program=dataclasses.replace(server.spec.program, tensors=tensors[:-2])
    )
    with pytest.raises(ConnectError, match="Compare the versions"):
        agent_on(server, timeout=0.5)


@pytest.mark.parametrize("changes", [{"schema_hash": b"short"}, {"protocol": 3}])
def test_a_reply_that_breaks_the_contract_is_refused_with_a_message(changes: dict[str, object]) -> None:
    server = FakeServer()
    honest = server.join

    def join(request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        reply = honest(request, timeout)
        for name, value in changes.items():
            setattr(reply, name, value)
        return reply

    server.join = join  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match=r"Compare the versions|Upgrade"):
        agent_on(server, timeout=0.5)


def test_a_retry_delay_of_weeks_is_not_obeyed() -> None:
    assert retries.asked_pause(2**32 - 1) <= 60.0
