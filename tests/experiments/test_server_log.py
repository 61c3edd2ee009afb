"""What clients sent to a server becomes episodes of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import DQN, SAC, ScriptedClient, join_request, synthetic_segment

from rl4sys.collection import DatasetSource, UnusableData
from rl4sys.experience import Ending, Segment
from rl4sys.experiments import Run, load_experiment
from rl4sys.experiments.server_log import recorded_episodes
from rl4sys.policy import DiscreteAction
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.weights import Version
from rl4sys.wire import encode_segment


@pytest.fixture
def transport(tmp_path: Path) -> Iterator[InProcessTransport]:
    service = TrainingService(tmp_path / "data", ServiceOptions(workers="threads", restart_seconds=0.01))
    yield InProcessTransport(service)
    service.drain()


def pushed(client: ScriptedClient, segments: list[Segment]) -> None:
    client.push_bytes({n: encode_segment(client.form, segment) for n, segment in enumerate(segments)})


def part(whole: Segment, start: int, end: int) -> Segment:
    return replace(
        whole,
        start=start,
        ending=whole.ending if end == whole.steps else Ending.CONTINUES,
        observation={name: array[start : end + 1] for name, array in whole.observation.items()},
        action=whole.action[start:end],
        reward=whole.reward[start:end],
        extras={name: array[start:end] for name, array in whole.extras.items()},
    )


def test_segments_of_an_episode_are_joined_and_gaps_divide_it(transport: InProcessTransport, tmp_path: Path) -> None:
    client = ScriptedClient(transport, join_request("one", DQN))
    whole, broken = (synthetic_segment(client.spec, "one", number, steps=9) for number in (1, 3))
    pushed(client, [part(whole, 0, 4), part(broken, 0, 2), part(whole, 4, 9), part(broken, 5, 9)])
    first, *rest = recorded_episodes(str(tmp_path / "data"))
    assert np.array_equal(first.observation["queue"], whole.observation["queue"])
    assert np.array_equal(first.action, whole.action)
    assert np.array_equal(first.reward, whole.reward)
    assert first.is_terminated
    assert [(len(piece.reward), piece.is_terminated) for piece in rest] == [(2, False), (4, True)]
    source = DatasetSource([first, *rest], client.spec, seed=0)
    newest = Version(3, np.zeros(0, np.float32))
    assert source.steps == 15
    assert sum(segment.steps for segment in source.collect(newest).segments) == 64


def test_actions_are_as_the_system_took_them(transport: InProcessTransport, tmp_path: Path) -> None:
    counted = ScriptedClient(transport, join_request("counted", DQN, action=DiscreteAction(2, start=5)))
    choices = synthetic_segment(counted.spec, "counted", 0)
    pushed(counted, [choices])
    bounded = ScriptedClient(transport, join_request("bounded", SAC))
    vectors = synthetic_segment(bounded.spec, "bounded", 0)
    pushed(bounded, [replace(vectors, action=np.full_like(vectors.action, 99.0))])
    learners = tmp_path / "data" / "learners"
    (episode,) = recorded_episodes(str(learners / "counted"))
    assert np.array_equal(episode.action, choices.action + 5)
    (episode,) = recorded_episodes(str(learners / "bounded"))
    assert np.array_equal(episode.action[0], np.float32(bounded.spec.action.high))
    with pytest.raises(UnusableData, match=r"several learners; give .*/learners/NAME of one: bounded, counted"):
        recorded_episodes(str(tmp_path / "data"))


def test_a_run_refuses_a_log_of_another_problem(transport: InProcessTransport, tmp_path: Path) -> None:
    client = ScriptedClient(transport, join_request("one", DQN))
    pushed(client, [synthetic_segment(client.spec, "one", 0)])
    config = load_experiment(
        {
            "algorithm": {"name": "bc"},
            "environment": {"name": "CartPole-v1"},
            "training": {"data": str(tmp_path / "data")},
            "experiment": {"directory": str(tmp_path / "runs"), "threads": 1},
        }
    )
    with pytest.raises(UnusableData, match="it does not fit this environment"):
        Run.create(config)
    assert not (tmp_path / "runs").exists()


def test_what_is_neither_a_dataset_nor_a_learner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match="there is no dataset"):
        recorded_episodes(str(tmp_path))
