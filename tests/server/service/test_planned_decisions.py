"""Policies that plan: decided by the server, refused to clients that decide by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.server.clients import HEADS, PETS, ScriptedClient, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.client import ConnectError, connect
from rl4sys.experience import StreamKey
from rl4sys.policy import KeyedNoise, NumpyPolicy
from rl4sys.seeding import Seeds
from rl4sys.server import InProcessTransport
from rl4sys.wire import FailureReason, Question, decode_decision, encode_question
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import policy_pb2

Serve = Callable[..., InProcessTransport]


def learned(transport: InProcessTransport) -> ScriptedClient:
    """A client whose learner has a model and plans."""
    client = ScriptedClient(transport, join_request("a", PETS, "shared"))
    client.push(range(6))
    wait_for_version(client, local_learner(PETS, 6).store.latest)
    return client


def agent(transport: InProcessTransport, decide: str) -> Any:
    values = {"client_id": "a", "policy_id": "shared", "decide": decide, "decide_timeout": 30.0, "timeout": 60}
    return connect(values, transport, lambda observation: np.zeros(2, np.float32))


def test_the_server_plans_with_the_newest_model(serve: Serve) -> None:
    client = learned(serve())
    seen = {"queue": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)}
    policy = NumpyPolicy(client.spec, client.weights())
    streams = [StreamKey("a", "agent", lane) for lane in (0, 1)]
    noise = KeyedNoise(Seeds(PETS[1]["seed"]).integer("decisions"), streams, policy.noise_size).at(3)
    question = Question("agent", 0, 3, seen, policy.initial_carry(2), 2)
    reply = client.transport.act(encode_question(client.form, question, client.joined.session), 30.0)
    found, expected = decode_decision(client.form, reply, 2)[1], policy.act(seen, noise, policy.initial_carry(2))
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_array_equal(found.carry["plan"], expected.carry["plan"])


def test_a_client_that_asks_acts_with_plans(serve: Serve) -> None:
    transport = serve()
    learned(transport)
    with agent(transport, "server") as asking, asking.episode() as episode:
        chosen = np.stack([episode.act(np.full(3, number, np.float32)) for number in range(4)])
        assert asking.health().unanswered_decisions == 0
    assert (chosen >= [-1.0, 0.0]).all()
    assert (chosen <= [2.0, 5.0]).all()


def test_a_client_that_decides_by_itself_is_refused_with_what_to_do(serve: Serve) -> None:
    transport = serve()
    learned(transport)
    with pytest.raises(ConnectError, match=r"planned.*set decide: server"):
        agent(transport, "local")


def test_a_client_without_the_head_is_refused_by_its_name(serve: Serve) -> None:
    request = join_request("a", PETS)
    del request.heads[:]
    request.heads.extend(kind for kind in HEADS if kind != policy_pb2.HEAD_KIND_PLANNED)
    with pytest.raises(CallFailed, match="planned") as failed:
        serve().join(request, 60.0)
    assert failed.value.failure.reason is FailureReason.MISSING_OPS
