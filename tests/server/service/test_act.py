"""Act: decisions on the server for clients with `decide: server`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import ACTION, DDPG, PETS, PPO, ScriptedClient, join_request
from tests.server.loopback import StubTransport
from tests.server.workers.test_fold import wait_for_version

from rl4sys.client import Agent, connect
from rl4sys.policy import NumpyPolicy
from rl4sys.seeding import Seeds
from rl4sys.server import GrpcServer, InProcessTransport, ServerOptions, ServiceOptions
from rl4sys.wire import FailureReason, Question, SegmentFormat, decode_decision, encode_question
from rl4sys.wire.calls import CallFailed, Transport
from rl4sys.wire.generated import policy_pb2, status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]
SETTINGS = {"client_id": "a", "decide": "server", "decide_timeout": 30.0, "seed": 5, "timeout": 60}
SEEN = {"queue": np.ones((2, 3), np.float32)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    listening = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path / "data", service=ServiceOptions(workers="threads")))
    yield listening
    listening.drain()


def asking(transport: Transport | None, **settings: Any) -> Agent:
    return connect(SETTINGS | {"policy_id": "shared"} | settings, transport, lambda observation: 0)


def decide(agent: Agent, count: int) -> list[Any]:
    rng = np.random.default_rng(7)
    with agent.episode() as episode:
        return [episode.act(rng.normal(size=3).astype(np.float32)) for _ in range(count)]


def act(client: ScriptedClient, **changes: Any) -> training_pb2.ActReply:
    question = Question("agent", 0, 3, SEEN, None, 2)
    message = encode_question(client.form, question, client.joined.session)
    message.MergeFrom(training_pb2.ActRequest(**changes))
    return client.transport.act(message, 30.0)


def test_a_client_that_asks_decides_as_one_that_has_the_policy(server: GrpcServer) -> None:
    address = f"127.0.0.1:{server.port}"
    ScriptedClient(StubTransport(server.port), join_request("a", policy_id="shared"))
    noise_seed = Seeds(PPO[1]["seed"]).integer("decisions")
    with asking(None, server=address) as agent:
        asked = decide(agent, 200)
        assert agent.health().unanswered_decisions == 0
    with asking(None, server=address, decide="local", seed=noise_seed) as agent:
        assert decide(agent, 200) == asked
    assert len(set(asked)) == 2
    status = StubTransport(server.port).status(status_pb2.StatusRequest(), 5.0)
    assert [client.server_decisions for client in status.clients] == [200]
    assert {(call.method, call.code): call.count for call in status.server.calls}["Act", "OK"] == 200


def test_rows_may_have_lanes_and_steps_of_their_own(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    rows = [decode_decision(client.form, act(client, lanes=[lane] * 2, steps=[9, 4]), 2)[1] for lane in (0, 6)]
    one = Question("agent", 6, 4, {"queue": SEEN["queue"][:1]}, None, 1)
    alone = client.transport.act(encode_question(client.form, one, client.joined.session), 5.0)
    extras = decode_decision(client.form, alone, 1)[1].extras["log_prob"]
    np.testing.assert_array_equal(rows[1].extras["log_prob"][1:], extras)
    with pytest.raises(CallFailed, match="1 lanes for 2 rows"):
        act(client, lanes=[1])


def test_a_client_that_exploits_gets_decisions_of_the_exploit_policy(serve: Serve) -> None:
    transport = serve()
    local = ScriptedClient(transport, join_request("a", DDPG))
    request = join_request("a", DDPG)
    del request.ops[:], request.heads[:]
    request.mode = training_pb2.ACTING_MODE_EXPLOIT
    reply = transport.join(request, 30.0)
    form = SegmentFormat.from_message(reply.exploit_schema)
    question = encode_question(form, Question("agent", 0, 0, SEEN, None, 2), reply.session, reply.schema_hash)
    _, decision = decode_decision(form, transport.act(question, 5.0), 2)
    learner = transport._service._learners.find("a")
    assert learner is not None
    assert learner.exploit is not None
    exploit = NumpyPolicy(learner.exploit, local.weights())
    np.testing.assert_allclose(decision.action, exploit.act(SEEN, np.zeros((2, exploit.noise_size))).action, rtol=1e-6)


def test_a_frozen_learner_decides_with_the_version_that_it_had(serve: Serve) -> None:
    transport = serve()
    client = ScriptedClient(transport, join_request("a"))
    before = act(client)
    learner = transport._service._learners.find("a")
    assert learner is not None
    learner.give_order("frozen", "", "")
    client.push(range(8))
    wait_for_version(client, 1)
    assert act(client) == before
    learner.give_order("follow", "", "")
    assert act(client).version >= 1


def test_a_learner_that_needs_an_unknown_head_is_joined_by_those_who_ask(serve: Serve) -> None:
    transport = serve()
    request = join_request("a")
    del request.heads[:]
    with pytest.raises(CallFailed, match=r"needs the head categorical.*set decide: server or upgrade") as failed:
        transport.join(request, 30.0)
    assert failed.value.failure.reason is FailureReason.MISSING_OPS
    spaces = {"observation": 3, "action": ACTION.n, "algorithm": "PPO"}
    with asking(transport, policy_id=None, **spaces) as agent:
        assert decide(agent, 1)[0] in range(2)


def test_a_slow_planner_delays_neither_pushes_nor_other_learners(
    server: GrpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, hold = StubTransport(server.port), threading.Event()
    slow, other = (ScriptedClient(transport, join_request(name)) for name in ("slow", "other"))
    decides = NumpyPolicy.act_on_rows

    def plan(policy: NumpyPolicy, observation: Any, noise: Any, carry: Any = None) -> Any:
        hold.wait(30.0)
        return decides(policy, observation, noise, carry)

    with ThreadPoolExecutor(32) as pool:
        monkeypatch.setattr(NumpyPolicy, "act_on_rows", plan)
        waiting = [pool.submit(act, slow) for _ in range(24)]
        assert slow.push(range(2)).acknowledged
        transport.status(status_pb2.StatusRequest(), 30.0)
        ScriptedClient(transport, join_request("third"))
        monkeypatch.setattr(NumpyPolicy, "act_on_rows", decides)
        act(other)
        assert not any(call.done() for call in waiting)
        hold.set()
        assert {call.result().version for call in waiting} <= {0, 1}


def test_a_question_whose_caller_is_gone_before_its_turn_is_not_decided(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, hold, began = ScriptedClient(serve(), join_request("a")), threading.Event(), []
    service = client.transport._service  # type: ignore[attr-defined]  # as the gRPC server calls it
    question = encode_question(client.form, Question("agent", 0, 3, SEEN, None, 2), client.joined.session)
    decides = NumpyPolicy.act_on_rows

    def plan(policy: NumpyPolicy, *arguments: Any) -> Any:
        began.append(1)
        hold.wait(30.0)
        return decides(policy, *arguments)

    async def ask() -> None:
        first, second = (asyncio.create_task(service.act_async(question)) for _ in range(2))
        while not began:
            await asyncio.sleep(0.001)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        hold.set()
        await first
        await service.act_async(question)

    monkeypatch.setattr(NumpyPolicy, "act_on_rows", plan)
    asyncio.run(ask())
    assert len(began) == 2


def test_a_planner_decides_for_a_client_that_asks_and_is_refused_to_one_that_does_not(serve: Serve) -> None:
    transport = serve()
    request = join_request("a", PETS)
    request.heads.remove(policy_pb2.HEAD_KIND_PLANNED)
    with pytest.raises(CallFailed, match=r"needs .*the head planned.*set decide: server or upgrade"):
        transport.join(request, 30.0)
    spaces = {"observation": 3, "action": {"low": [-1, 0], "high": [2, 5]}}
    method = {"algorithm": {"name": "PETS", **PETS[1]["algorithm"]}, "buffer": PETS[1]["buffer"]}
    with connect(SETTINGS | spaces | method, transport, lambda observation: [0.0, 1.0]) as agent:
        actions = decide(agent, 5)
        assert agent.flush()
        assert (agent.health().unanswered_decisions, agent.health().bad_inputs) == (0, 0)
    assert all(action.shape == (2,) and -1 <= action[0] <= 2 and 0 <= action[1] <= 5 for action in actions)
