"""The fallback decides, and the learner may have use for what it decided."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.waiting import until

from rl4sys.client import Agent, Ending, SettingsError
from rl4sys.client.action_adapter import BadAction, action_adapter
from rl4sys.experience import DecidedBy
from rl4sys.policy import ActionStructure, BoxAction, DiscreteAction, Head, MixedAction, MultiDiscreteAction
from rl4sys.wire import encode_policy, encode_segment
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import experience_pb2, training_pb2


def away(call: str) -> None:
    raise CallFailed(Code.UNAVAILABLE, "away")


def exploiting() -> FakeServer:
    """A server that sends the exploit policy, too."""
    server = FakeServer()
    exploit = replace(server.spec, head=Head("deterministic", server.spec.head.inputs))
    server.reply.exploit.CopyFrom(encode_policy(exploit))
    return server


def order(server: FakeServer, agent: Agent, mode: str, sequence: int) -> None:
    server.give_order(mode, sequence)
    until(lambda: agent.health().control_sequence == sequence)


@pytest.mark.parametrize("accepts", [True, False])
def test_decisions_of_the_fallback_are_recorded_as_such_if_the_learner_accepts_them(accepts: bool) -> None:
    server = FakeServer()
    server.reply = training_pb2.JoinReply(accepts_fallback=accepts)
    with agent_on(server, lambda observation: 3) as agent:
        episode = agent.episode()
        steps(episode, 3)
        order(server, agent, "off", 1)
        steps(episode, 2, first=3)
        order(server, agent, "follow", 2)
        steps(episode, 2, first=5)
        episode.end(seen(7))
    found = [(s.start, s.steps, s.decided_by, s.ending) for s in server.segments()]
    if not accepts:
        assert found == [(0, 3, DecidedBy.POLICY, Ending.TRUNCATED), (5, 2, DecidedBy.POLICY, Ending.TERMINATED)]
        return
    assert found == [
        (0, 3, DecidedBy.POLICY, Ending.CONTINUES),
        (3, 2, DecidedBy.FALLBACK, Ending.CONTINUES),
        (5, 2, DecidedBy.POLICY, Ending.TERMINATED),
    ]
    middle = server.segments()[1]
    assert (middle.action.tolist(), middle.reward.tolist()) == ([3, 3], [3, 4])
    assert middle.extras["log_prob"].tolist() == [0, 0]
    assert middle.observation["observation"][:, 0].tolist() == [3, 4, 5]


def test_segments_of_a_policy_have_the_same_bytes_as_before_the_field_existed() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
    (data,) = server.stored.values()
    message = experience_pb2.Segment.FromString(data)
    message.ClearField("decided_by")
    assert message.SerializeToString() == data
    (recorded,) = server.segments()
    assert encode_segment(server.form, recorded) == data


def test_observe_compares_the_policy_with_the_fallback_and_records_nothing() -> None:
    server = exploiting()
    with agent_on(server, lambda observation: 1, mode="observe") as agent:
        episode = agent.episode()
        assert [episode.act(seen(step)) for step in range(8)] == [1] * 8
        episode.end(seen(8))
        health = agent.health()
        assert (health.mode, health.observed_decisions, health.fallback_decisions) == ("observe", 8, 8)
        assert 0 <= health.agreed_decisions <= 8
        assert server.joins[0].mode == training_pb2.ACTING_MODE_OBSERVE
        assert agent.flush()
    assert server.segments() == []


def test_observe_counts_agreement_exactly() -> None:
    server = exploiting()
    with agent_on(server, mode="exploit") as agent:
        wanted = [agent.episode().act(seen(step)) for step in range(8)]
    answers = iter([wanted[0], wanted[1], (wanted[2] + 1) % 4, wanted[3]])
    with agent_on(server, lambda observation: next(answers), mode="observe") as agent:
        episode = agent.episode()
        for step in range(4):
            episode.act(seen(step))
        assert (agent.health().observed_decisions, agent.health().agreed_decisions) == (4, 3)


def test_exploit_acts_with_the_exploit_policy_and_records_nothing() -> None:
    server = exploiting()
    with agent_on(server, mode="exploit") as agent:
        episode = agent.episode()
        assert len({episode.act(seen(1)) for _ in range(600)}) == 1
        episode.reward(1.0)
        episode.reward(1.0, decision=0)
        episode.end(seen(0))
        assert agent.flush()
        assert agent.health().unrecorded_decisions == 600
        assert agent.health().late_rewards == 0
        assert server.publish(some_weights(server.spec, 1)) == 1
        until(lambda: agent.health().version == 1)
    assert server.segments() == []
    assert server.joins[0].mode == training_pb2.ACTING_MODE_EXPLOIT


def test_exploit_needs_a_server_that_sends_the_exploit_policy() -> None:
    with pytest.raises(ConnectionError, match="sent no exploit policy"):
        agent_on(FakeServer(), mode="exploit")


def test_a_cached_policy_can_exploit_without_a_server(tmp_path: Path) -> None:
    server = exploiting()
    with agent_on(server, cache=str(tmp_path)):
        pass
    server.before = away
    with agent_on(server, cache=str(tmp_path), timeout=0.05, mode="exploit") as agent:
        episode = agent.episode()
        assert len({episode.act(seen(1)) for _ in range(50)}) == 1


def test_observe_needs_a_fallback() -> None:
    with pytest.raises(SettingsError, match="observe"):
        agent_on(FakeServer(), mode="observe")


STRUCTURE = ActionStructure({"server": DiscreteAction(4), "rate": BoxAction((0.0,), (1.0,))})


@pytest.mark.parametrize(
    ("adapter", "good", "row", "bad"),
    [
        (action_adapter(DiscreteAction(3, start=5)), 6, [1], [4, 8, 6.0, True, [6], None]),
        (action_adapter(MultiDiscreteAction((2, 3))), [1, 2], [1, 2], [[2, 0], [0, -1], [0], 0, [0.0, 1.0]]),
        (action_adapter(BoxAction((-1.0,), (2.0,))), [1.5], [1.5], [[2.5], [float("nan")], 1.0, ["a"]]),
        (action_adapter(MixedAction((3,), (0.0,), (1.0,))), [2, 0.5], [2, 0.5], [[3, 0.5], [0.5, 0.5], [1, 2.0], [1]]),
        (action_adapter(STRUCTURE.spec, STRUCTURE), {"server": 2, "rate": [0.5]}, [2, 0.5], [{"server": 2}, 3, None]),
    ],
)
def test_an_action_is_checked_against_the_action_space(adapter: Any, good: Any, row: list[float], bad: Any) -> None:
    read = adapter.read(good)
    assert np.atleast_1d(read).tolist() == row
    finished = adapter.finish(read[None])
    assert str(finished) == str(good) or np.array_equal(finished, good) or finished.keys() == good.keys()
    assert adapter.agree(read, adapter.read(finished))
    for value in bad:
        with pytest.raises(BadAction):
            adapter.read(value)


def test_a_fallback_with_a_parameter_for_it_sees_the_mask() -> None:
    server = FakeServer(small_policy(masked=True))
    server.give_order("off", 1)
    masks: list[Any] = []

    def allowed(observation: Any, mask: Any = None) -> int:
        masks.append(mask)
        return 0 if mask is None else int(np.argmax(mask))

    with agent_on(server, fallback=allowed) as agent, agent.episode() as episode:
        until(lambda: agent.health().off is not None)
        assert episode.act(seen(0), mask=[False, False, True, True]) == 2
        assert episode.act(seen(1)) == 0
    assert masks == [[False, False, True, True], None]
