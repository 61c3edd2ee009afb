"""Segments of decisions that a system took by itself: imitated first, then replayed or counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.client.agents import agent_on
from tests.server.clients import (
    DQN,
    OBSERVATION,
    PPO,
    SAC,
    ScriptedClient,
    action_of,
    eventually,
    join_request,
    synthetic_segment,
)
from tests.server.workers.test_fallback_segments import status_of
from tests.server.workers.test_fold import Method, wait_for_version

from rl4sys.experience import Array, DecidedBy, Segment
from rl4sys.learning import Learner
from rl4sys.policy import NumpyPolicy, PolicySpec
from rl4sys.server import InProcessTransport
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.wire import encode_segment

Serve = Callable[..., InProcessTransport]


def imitating(method: Method, **imitate: object) -> Method:
    """The method, imitating the first 60 decisions of the incumbent."""
    name, values = method
    return name, values | {"algorithm": values["algorithm"] | {"imitate": {"decisions": 60} | imitate}}


METHODS = pytest.mark.parametrize("method", [imitating(m) for m in (PPO, DQN, SAC)], ids=lambda method: method[0])


def recorded(spec: PolicySpec, number: int) -> Segment:
    """The incumbent decides ten segments, then the policy."""
    segment = synthetic_segment(spec, "a", number)
    return replace(segment, decided_by=DecidedBy.INCUMBENT) if number < 10 else segment


def push(client: ScriptedClient, numbers: range) -> None:
    client.push_bytes({n: encode_segment(client.form, recorded(client.spec, n)) for n in numbers})


def local_learner(method: Method, segments: int) -> Learner:
    learner = build_learner(resolve(*method), LearnerSetup("a", *method, OBSERVATION, action_of(method), 1_000))
    for number in range(segments):
        learner.learn([recorded(learner.algorithm.policies.explore, number)])
    return learner


@METHODS
def test_the_service_imitates_as_a_local_learner_does_also_after_restarts(serve: Serve, method: Method) -> None:
    expected = local_learner(method, 20).store.newest
    for first, last in ((0, 3), (3, 12), (12, 20)):
        client = ScriptedClient(serve(), join_request("a", method))
        push(client, range(first, last))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


def test_ppo_counts_decisions_of_the_incumbent_that_it_does_not_imitate(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a", PPO))
    push(client, range(10))
    eventually(lambda: dict(status_of(client.transport).unused_steps) == {"incumbent": 80})
    assert status_of(client.transport).version == status_of(client.transport).learned_steps == 0
    transport = serve()
    eventually(lambda: dict(status_of(transport).unused_steps) == {"incumbent": 80})


def test_a_policy_imitates_what_an_agent_recorded(serve: Serve) -> None:
    transport = serve()
    method = imitating(PPO, decisions=200, epochs=60, lr=0.01, floor=0.1)
    client = ScriptedClient(transport, join_request("a", method))
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((200, 3)).astype(np.float32)
    with agent_on(transport, client_id="a", observation={"queue": 3}, action=2) as agent:
        for part in np.split(observations, 10):
            with agent.episode() as episode:
                for observation in part:
                    episode.took(observation, int(observation[0] > 0))
                    episode.reward(1.0)
                episode.end(part[-1])
        assert agent.flush()
    wait_for_version(client, 1)
    probability = probabilities(client, observations)
    right = probability[np.arange(200), (observations[:, 0] > 0).astype(int)]
    assert right.mean() > 0.8
    assert 0.02 < probability.min() < 0.2


def probabilities(client: ScriptedClient, observations: Array) -> Array:
    """Of both choices, for each observation."""
    policy = NumpyPolicy(client.spec, client.weights())
    policy.act({"queue": observations}, np.zeros((len(observations), policy.noise_size)))
    scores = np.exp(policy.scores(len(observations))[0])
    return scores / scores.sum(-1, keepdims=True)
