"""Replay as a learner of a server uses it: goals without an environment, scratch files, and memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import (
    DDPG,
    SMALL,
    ScriptedClient,
    action_of,
    eventually,
    join_request,
    synthetic_segment,
)

from rl4sys.experience import ArraySpec, Segment
from rl4sys.learning import Learner
from rl4sys.policy import PolicySpec
from rl4sys.replay import AvailableSpace
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.server.workers.learner_limits import LearnerLimits
from rl4sys.wire import encode_segment
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]
DISTANCE = {"type": "distance", "threshold": 0.5, "terminates": True}
SHOWN = tuple(ArraySpec(name, "float32", (3,)) for name in ("achieved_goal", "desired_goal", "queue"))
ACTION = action_of(DDPG)


def settings(**buffer: Any) -> dict[str, Any]:
    algorithm = {"learning_starts": 20, "batch_size": 8}
    return SMALL | {"algorithm": algorithm, "buffer": {"type": "hindsight", "size": 100, **buffer}, "seed": 5}


def request(**buffer: Any) -> training_pb2.JoinRequest:
    return join_request("a", ("DDPG", settings(**buffer)), observation=SHOWN, action=ACTION)


def reaching(spec: PolicySpec, sequence: int) -> Segment:
    """A synthetic segment whose goal is a queue length."""
    made = synthetic_segment(spec, "a", sequence)
    queue = made.observation["queue"]
    goal = np.broadcast_to(queue[0] + 1.0, queue.shape).copy()
    return replace(made, observation={"achieved_goal": queue, "desired_goal": goal, "queue": queue})


def local(segments: int, **buffer: Any) -> Learner:
    setup = LearnerSetup("a", "DDPG", settings(**buffer), SHOWN, ACTION, 1_000)
    learner = build_learner(resolve("DDPG", setup.parameters), setup)
    for sequence in range(segments):
        learner.learn([reaching(learner.algorithm.policies.explore, sequence)])
    return learner


def push(client: ScriptedClient, numbers: range) -> None:
    client.push_bytes({number: encode_segment(client.form, reaching(client.spec, number)) for number in numbers})


def wait_for_version(client: ScriptedClient, version: int) -> None:
    status = status_pb2.StatusRequest(learner=client.joined.learner)
    eventually(lambda: client.transport.status(status, 5.0).learners[0].version >= version)


@pytest.mark.parametrize("storage", ["memory", "mmap"])
def test_a_restarted_service_resumes_hindsight_replay_exactly(serve: Serve, storage: str) -> None:
    expected = local(20, goal_reward=DISTANCE).store.newest
    for numbers in (range(7), range(7, 13), range(13, 20)):
        client = ScriptedClient(serve(), request(goal_reward=DISTANCE, storage=storage))
        push(client, numbers)
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


def test_only_new_replay_rows_are_saved(serve: Serve, tmp_path: Path) -> None:
    for numbers in (range(3), range(3, 5)):
        client = ScriptedClient(serve(), request(goal_reward=DISTANCE))
        push(client, numbers)
        wait_for_version(client, local(numbers.stop, goal_reward=DISTANCE).store.latest)
    serve()
    chunks = sorted(path.stem for path in tmp_path.glob("data/learners/a/replay/*"))
    assert chunks == ["000000000000-000000000024", "000000000024-000000000040"]


@pytest.mark.parametrize(
    ("buffer", "problem"),
    [
        ({}, r"Set buffer\.goal_reward=\{type: distance, threshold: …\}"),
        ({"goal_reward": DISTANCE, "on_low_memory": "shrink"}, r"buffer\.on_low_memory: got shrink; .* that fits"),
        ({"goal_reward": DISTANCE, "size": 10**13}, r"buffer\.size: the replay buffer does not fit: 10,000,000,000"),
    ],
)
def test_buffers_that_a_server_cannot_have_are_refused(serve: Serve, buffer: dict[str, Any], problem: str) -> None:
    generous = ServiceLimits(per_learner=LearnerLimits(replay_bytes=1 << 60, memory_bytes=1 << 60))
    with pytest.raises(CallFailed, match=problem) as failed:
        serve(ServiceOptions("threads", limits=generous)).join(request(**buffer), 10.0)
    assert failed.value.code is Code.INVALID_ARGUMENT


def test_an_existing_learner_continues_though_memory_is_short(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = ScriptedClient(serve(), request(goal_reward=DISTANCE))
    push(client, range(1))
    monkeypatch.setattr(AvailableSpace, "at", lambda directory: AvailableSpace(memory=10, disk=10**9))
    assert ScriptedClient(serve(), request(goal_reward=DISTANCE)).joined.learner == "a"
    eventually(lambda: "It continues all the same, since the learner exists already." in caplog.text)
