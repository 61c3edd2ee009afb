from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import (
    ACTION,
    DDPG,
    DQN,
    DREAMER,
    OBSERVATION,
    PETS,
    PPO,
    RECURRENT_DQN,
    RECURRENT_PPO,
    REMEMBERING_PPO,
    SAC,
    SQL,
    TD3,
    ScriptedClient,
    action_of,
    eventually,
    join_request,
    synthetic_segment,
)

from rl4sys.experience import ArraySpec
from rl4sys.learning import Learner
from rl4sys.records import Durability
from rl4sys.server import InProcessTransport, ServiceOptions
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.events import Event, Held, LearnerProgress, Published
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.server.workers.worker_main import WorkerControl, work
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]
Method = tuple[str, dict[str, Any]]
_RECURRENT = [
    pytest.param(RECURRENT_PPO, id="recurrent PPO"),
    pytest.param(REMEMBERING_PPO, id="PPO that remembers actions"),
    pytest.param(RECURRENT_DQN, id="recurrent DQN"),
]
METHODS = pytest.mark.parametrize(
    "method", [PPO, *_RECURRENT, DQN, SAC, TD3, DDPG, SQL, PETS, DREAMER], ids=lambda method: method[0]
)


def local_learner(method: Method, segments: int, client: str = "a") -> Learner:
    setup = LearnerSetup(client, *method, OBSERVATION, action_of(method), 1_000)
    learner = build_learner(resolve(*method), setup)
    for sequence in range(segments):
        learner.learn([synthetic_segment(learner.algorithm.policies.explore, client, sequence)])
    return learner


def wait_for_version(client: ScriptedClient, version: int) -> None:
    request = status_pb2.StatusRequest(learner=client.joined.learner)
    eventually(lambda: client.transport.status(request, 5.0).learners[0].version >= version)


@METHODS
def test_the_service_learns_the_same_weights_as_a_local_learner(serve: Serve, method: Method) -> None:
    expected = local_learner(method, 20).store.newest
    client = ScriptedClient(serve(), join_request("a", method))
    client.push(range(3))
    client.push(range(3, 4))
    client.push(range(4, 20))
    wait_for_version(client, expected.number)
    assert client.transport.status(status_pb2.StatusRequest(), 5.0).learners[0].version == expected.number
    np.testing.assert_array_equal(client.weights(), expected.blob)


@METHODS
def test_a_drained_and_restarted_service_continues_exactly(serve: Serve, method: Method) -> None:
    expected = local_learner(method, 20).store.newest
    for end in (7, 13, 20):
        client = ScriptedClient(serve(), join_request("a", method))
        client.push(range(end))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


@METHODS
def test_a_learner_without_its_newest_checkpoint_folds_its_log_again(
    serve: Serve, method: Method, tmp_path: Path
) -> None:
    expected = local_learner(method, 20).store.newest
    client = ScriptedClient(serve(), join_request("a", method))
    client.push(range(9))
    client = ScriptedClient(serve(), join_request("a", method))
    client.push(range(9, 15))
    serve()
    newest = sorted((tmp_path / "data" / "learners" / "a" / "checkpoints").glob("0*"))[-1]
    (newest / "state.json").write_bytes(b"damaged")
    client = ScriptedClient(serve(), join_request("a", method))
    client.push(range(15, 20))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


def test_the_service_learns_the_same_from_images_as_a_local_learner(serve: Serve) -> None:
    network = {"type": "cnn", "filters": [4], "kernels": [4], "strides": [2], "hidden_dims": [8]}
    method = (SAC[0], SAC[1] | {"network": {"actor": network, "critic": network}})
    seen = (ArraySpec("pixels", "uint8", (8, 8, 3)), *OBSERVATION)
    learner = build_learner(resolve(*method), LearnerSetup("a", *method, seen, ACTION, 1_000))
    for sequence in range(4):
        learner.learn([synthetic_segment(learner.algorithm.policies.explore, "a", sequence)])
    client = ScriptedClient(serve(), join_request("a", method, observation=seen, action=ACTION))
    client.push(range(4))
    wait_for_version(client, learner.store.newest.number)
    np.testing.assert_array_equal(client.weights(), learner.store.newest.blob)


def test_old_log_files_are_removed_and_no_segment_is_forgotten(serve: Serve, tmp_path: Path) -> None:
    frequent = (PPO[0], PPO[1] | {"checkpoint_frequency": 64})
    expected = local_learner(frequent, 40).store.newest
    client = ScriptedClient(serve(), join_request("a", frequent))
    learner = client.transport._service._learners.find("a")
    assert learner is not None
    learner.inbox._records._file_bytes = 500
    for sequence in range(40):
        client.push([sequence])
    wait_for_version(client, expected.number)
    log = tmp_path / "data" / "learners" / "a" / "log"
    eventually(lambda: len(list(log.glob("0*"))) < 30)
    again = ScriptedClient(serve(), join_request("a", frequent))
    assert again.push(range(40)).repeated_segments == 40
    np.testing.assert_array_equal(again.weights(), expected.blob)


def test_without_checkpoints_a_learner_folds_its_whole_log(serve: Serve, tmp_path: Path) -> None:
    expected = local_learner(PPO, 12).store.newest
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(12))
    client.transport._service.drain()
    shutil.rmtree(tmp_path / "data" / "learners" / "a" / "checkpoints")
    client = ScriptedClient(serve(), join_request("a"))
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)


def test_a_damaged_record_of_the_log_is_never_learned_from(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(12))
    client.transport._service.drain()
    learner = tmp_path / "data" / "learners" / "a"
    shutil.rmtree(learner / "checkpoints")
    (file,) = (learner / "log").glob("0*.records")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    events: list[Event] = []
    work(learner, None, WorkerControl(), events.append)
    (held,) = [event for event in events if isinstance(event, Held)]
    assert "is damaged or missing" in held.problem
    assert not any(isinstance(event, LearnerProgress | Published) for event in events)


def test_a_service_in_memory_leaves_nothing_behind(serve: Serve, tmp_path: Path) -> None:
    transport = serve(ServiceOptions(workers="threads", durability=Durability.MEMORY))
    client = ScriptedClient(transport, join_request("a"))
    client.push(range(4))
    wait_for_version(client, 1)
    transport._service.drain()
    assert not (tmp_path / "data").exists()
