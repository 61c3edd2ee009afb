"""`decide: server`: the same decisions and records as those of a client with a copy of the policy."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer, small_policy, some_weights
from tests.client.grpc_server import listening
from tests.client.waiting import until

from rl4sys.client import Agent, ConnectError, Ending, SettingsError, load_settings
from rl4sys.client.answer_wait import AnswerWait
from rl4sys.client.observation_reader import BadObservation
from rl4sys.client.retries import Backoff
from rl4sys.experience import DecidedBy, Segment
from rl4sys.policy import DiscreteAction, Head
from rl4sys.wire import SegmentFormat
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

GRU = {"recurrent": True}


def asking(server: FakeServer, **settings: Any) -> Agent:
    return agent_on(server, lambda observation: 3, **{"decide": "server", "decide_timeout": 5.0} | settings)


def server_with(**policy: Any) -> FakeServer:
    server = FakeServer(small_policy(**policy), max_act_rows=64)
    server.reply.accepts_fallback = True
    return server


def refuse_acts(code: Code) -> Any:
    def refuse(call: str) -> None:
        if call == "act":
            raise CallFailed(code, "not now")

    return refuse


def bits(segment: Segment) -> list[Any]:
    arrays = [*segment.observation.values(), segment.action, segment.reward]
    arrays += [*segment.extras.values(), *segment.carry.values()]
    header = (segment.start, segment.policy_version, segment.ending, segment.decided_by, segment.stream)
    return [header, *(array.tobytes() for array in arrays)]


@pytest.mark.parametrize("policy", [{}, GRU, {"masked": True}])
def test_two_hundred_decisions_are_recorded_with_the_bits_of_a_local_client(policy: dict[str, bool]) -> None:
    found = []
    for place in ("local", "server"):
        server = server_with(**policy)
        with asking(server, decide=place) as agent:
            for length in (120, 80):
                with agent.episode() as episode:
                    steps(episode, length)
                    episode.end(seen(length))
        found.append([bits(segment) for segment in server.segments()])
        assert sum(segment.steps for segment in server.segments()) == 200
    assert found[0] == found[1]


def test_the_client_sends_no_ops_and_pulls_no_weights() -> None:
    server = server_with()
    called: list[str] = []
    server.before = called.append
    with asking(server, cache="unused") as agent, agent.episode() as episode:
        steps(episode, 3)
    assert not server.joins[0].ops
    assert not server.joins[0].heads
    assert "pull" not in called


def test_a_version_that_decides_cuts_the_segment() -> None:
    server = server_with(**GRU)
    with asking(server) as agent:
        episode = agent.episode()
        steps(episode, 3)
        server.publish(some_weights(server.spec, seed=1))
        steps(episode, 2, first=3)
        episode.end(seen(5))
        assert agent.health().version == 1
    found = [(s.start, s.steps, s.policy_version, s.ending) for s in server.segments()]
    assert found == [(0, 3, 0, Ending.CONTINUES), (3, 2, 1, Ending.TERMINATED)]
    assert any(array.any() for array in server.segments()[1].carry.values())


@pytest.mark.parametrize("code", [Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE, Code.INTERNAL, Code.PERMISSION_DENIED])
def test_the_fallback_decides_where_the_server_does_not(code: Code) -> None:
    server = server_with()
    with asking(server) as agent:
        episode = agent.episode()
        steps(episode, 2)
        server.before = refuse_acts(code)
        assert [episode.act(seen(step)) for step in range(2, 52)] == [3] * 50
        health = agent.health()
        episode.end(seen(52))
    assert (health.unanswered_decisions, health.fallback_decisions) == (50, 50)
    found = [(s.start, s.steps, s.decided_by) for s in server.segments()]
    assert found == [(0, 2, DecidedBy.POLICY), (2, 50, DecidedBy.FALLBACK)]


def test_a_server_that_is_away_is_asked_again_after_growing_pauses() -> None:
    now = [0.0]
    wait = AnswerWait(Backoff(random.Random(0)), lambda: now[0], timeout=0.1)
    asked = 0
    for tick in range(10_000):
        now[0] = tick / 1000
        if wait.may_ask():
            asked += 1
            wait.failed("away")
    assert 5 <= asked <= 15
    wait.answered()
    assert wait.may_ask()
    assert wait.may_ask()


def test_after_a_pause_one_thread_asks_for_all() -> None:
    now = [0.0]
    wait = AnswerWait(Backoff(random.Random(0)), lambda: now[0], timeout=0.1)
    wait.failed("away")
    now[0] = 10.0
    assert [wait.may_ask() for _ in range(3)] == [True, False, False]


def test_a_lost_session_is_joined_again_and_the_server_decides_on() -> None:
    server = server_with()
    with asking(server) as agent, agent.episode() as episode:
        steps(episode, 2)
        server.restart()
        until(lambda: episode.act(seen(2)) is not None and len(server.asked) > 4)
        assert len(server.joins) > 1
        assert agent.health().stopped is None


def test_a_killed_server_never_fails_a_decision_and_decides_again_when_it_is_back() -> None:
    server = server_with()
    settings = {"client_id": "test", "decide": "server", "send_interval": 0.0, "timeout": 5}
    with listening(server, "127.0.0.1:0") as (address, _):
        agent = agent_on(None, lambda observation: 3, **settings, server=address)  # type: ignore[arg-type]
        episode = agent.episode()
        until(lambda: episode.act(seen(0)) is not None and len(server.asked) >= 5)
    before = len(server.asked)
    assert [episode.act(seen(1)) for _ in range(20)] == [3] * 20
    server.restart()
    with listening(server, address):
        until(lambda: episode.act(seen(2)) is not None and len(server.asked) > before + 5)
        agent.close()


def test_a_slow_server_costs_no_more_than_the_deadline() -> None:
    server, hold = server_with(), threading.Event()
    with listening(server, "127.0.0.1:0") as (address, _):
        settings = {"server": address, "decide": "server", "decide_timeout": 0.05}
        with agent_on(None, lambda observation: 3, **settings) as agent, agent.episode() as episode:  # type: ignore[arg-type]
            server.before = lambda call: call == "act" and hold.wait(10.0)
            assert episode.act(seen(0)) == 3
            assert agent.health().unanswered_decisions == 1
            hold.set()


def test_many_episodes_are_decided_by_one_question() -> None:
    server, apart = server_with(**GRU), server_with(**GRU)
    with asking(server) as agent, asking(apart) as other:
        together, alone = [[each.episode() for _ in range(5)] for each in (agent, other)]
        for at in (0, 1):
            together[at].act(seen(0))
            alone[at].act(seen(0))
        del together[2], alone[2]
        for step in range(1, 4):
            expected = [episode.act(seen(step)) for episode in alone]
            assert agent.act_many(together, np.stack([seen(step)] * 4)) == expected
    asked = [question for question in server.asked if question.rows > 1]
    assert [(question.rows, list(question.lanes)) for question in asked] == [(4, [0, 1, 3, 4])] * 3
    assert list(asked[0].steps) == [1, 1, 0, 0]


def test_a_bad_row_goes_to_the_fallback_alone() -> None:
    server = server_with()
    with asking(server) as agent:
        episodes = [agent.episode() for _ in range(3)]
        actions = agent.act_many(episodes, [seen(0), np.full(8, np.nan), seen(0)])
        assert actions[1] == 3
        assert agent.health().bad_inputs == 1
        assert [question.rows for question in server.asked] == [2]


@pytest.mark.filterwarnings("ignore:overflow")
def test_rows_that_the_policy_cannot_use_are_found_by_asking_one_by_one() -> None:
    server = server_with(kind="relu")
    huge = np.full(8, 3e38, np.float32)
    with asking(server) as agent:
        episodes = [agent.episode() for _ in range(3)]
        agent.act_many(episodes, [seen(0), huge, seen(1)])
        health = agent.health()
    assert (health.bad_inputs, health.fallback_decisions, health.unanswered_decisions) == (1, 1, 0)


@pytest.mark.filterwarnings("ignore:overflow")
def test_where_a_bad_input_is_to_raise_the_servers_refusal_does() -> None:
    server = server_with(kind="relu")
    with asking(server, on_bad_input="raise") as agent, agent.episode() as episode:
        with pytest.raises(BadObservation, match="overflows"):
            episode.act(np.full(8, 3e38, np.float32))
        assert agent.health().decisions == 0


def test_an_order_to_turn_the_policy_off_is_obeyed_without_asking() -> None:
    server = server_with()
    with asking(server) as agent, agent.episode() as episode:
        server.give_order("off", 1)
        until(lambda: agent.health().control_sequence == 1)
        assert episode.act(seen(0)) == 3
        assert server.asked == []


def test_after_an_order_to_freeze_and_to_follow_the_server_still_decides() -> None:
    server = server_with()
    with asking(server) as agent, agent.episode() as episode:
        for sequence, mode in enumerate(("frozen", "follow"), start=1):
            server.give_order(mode, sequence)
            until(lambda expected=sequence: agent.health().control_sequence == expected)  # type: ignore[misc]
        server.publish(some_weights(server.spec, seed=1))
        until(lambda: agent.health().version == 1)
        assert episode.act(seen(0)) in range(4)
        assert agent.health().damaged_patches == 0


def test_the_exploit_policy_is_observed_beside_the_fallback() -> None:
    server = server_with()
    exploit = replace(server.spec, head=Head("deterministic", server.spec.head.inputs))
    server.spec, server.form = exploit, SegmentFormat.of(exploit)
    server.reply.exploit_schema.CopyFrom(server.form.to_message())
    with asking(server, mode="observe") as agent, agent.episode() as episode:
        steps(episode, 4)
        assert agent.health().observed_decisions == 4
    assert server.joins[0].mode == training_pb2.ACTING_MODE_OBSERVE


@pytest.mark.parametrize(("seed", "is_zero"), [(0, True), (None, False)])
def test_without_a_seed_every_start_begins_with_other_random_numbers(seed: int | None, is_zero: bool) -> None:
    server = server_with()
    with asking(server, seed=seed) as agent, agent.episode() as episode:
        steps(episode, 2)
    assert server.asked[1].step == server.asked[0].step + 1
    assert (server.asked[0].step == 0) == is_zero


def test_the_server_needs_a_fallback_for_the_time_that_it_is_away() -> None:
    with pytest.raises(SettingsError, match="decide: got server, but there is no fallback"):
        agent_on(server_with(), decide="server")


def test_an_older_server_that_does_not_describe_the_action_needs_it_in_the_settings() -> None:
    class Older(FakeServer):
        def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
            reply = super().join(request, timeout)
            reply.ClearField("action")
            return reply

    with asking(Older()) as agent, agent.episode() as episode:
        assert episode.act(seen(0)) in range(4)
    with pytest.raises(ConnectError, match="Upgrade it, or give `action`"):
        asking(Older(), action=None)


def test_the_settings_are_read_from_every_style_of_config() -> None:
    original = {"algorithm_name": "PPO", "client_id": "a", "decide": "server", "decide_timeout": 0.25}
    for values in (original, {"client_id": "a", "decide": "server", "decide_timeout": 0.25}):
        settings = load_settings(values)
        assert (settings.decide, settings.decide_timeout) == ("server", 0.25)
    with pytest.raises(SettingsError, match=r"decide: got 'serve'.*local"):
        load_settings({"client_id": "a", "decide": "serve"})


def test_actions_keep_the_start_that_the_learner_counts_from() -> None:
    server = server_with()
    server.spec = replace(server.spec, action=DiscreteAction(4, start=10))
    with asking(server, action=None) as agent, agent.episode() as episode:
        assert episode.act(seen(0)) in range(10, 14)
