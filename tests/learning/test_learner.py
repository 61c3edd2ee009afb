from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from algorithms.problems import problem
from rl4sys.algorithms import DQNConfig, Progress
from rl4sys.learning import Learner, ObservationStatistics, RewardScale
from rl4sys.policy import layout_of
from rl4sys.replay import OnceFresh, PrioritizedBuffer, Ratio, TrajectoryBuffer, UniformBuffer
from rl4sys.seeding import Seeds

from .fakes import RecordingAlgorithm, experience


def learner_of(steps: int = 20, max_age: int = 2, **parts: Any) -> tuple[Learner, RecordingAlgorithm]:
    """A learner that updates after every `steps` steps."""
    algorithm = RecordingAlgorithm()
    return Learner(algorithm, TrajectoryBuffer(OnceFresh(steps, max_age)), **parts), algorithm


def test_steps_and_updates_are_counted() -> None:
    learner, _ = learner_of(steps=20)
    for turn in range(4):
        learner.learn(experience(turn))
    assert (learner.steps, learner.updates) == (48, 2)


def test_a_version_is_published_only_after_updates() -> None:
    learner, _ = learner_of(steps=20)
    versions = []
    for turn in range(4):
        metrics = learner.learn(experience(turn))
        versions.append((bool(metrics), learner.store.latest, learner.store.newest.blob.tolist()))
    assert versions == [(False, 0, [0.0]), (True, 1, [1.0]), (False, 1, [1.0]), (True, 2, [2.0])]


def test_several_updates_of_one_call_publish_one_version() -> None:
    algorithm = RecordingAlgorithm()
    learner = Learner(algorithm, UniformBuffer(100, Ratio(0.5, 0, 4), np.random.default_rng(0)))
    learner.learn(experience(0))
    assert (learner.updates, learner.store.latest, learner.store.newest.blob.tolist()) == (6, 1, [6.0])


def test_the_age_of_experience_is_the_number_of_versions_since_then() -> None:
    learner, algorithm = learner_of(steps=12, max_age=9)
    for turn, version in enumerate((0, 0, 1, 0)):
        learner.learn(experience(turn, version=version))
    assert [int(batch.age.max()) for batch in algorithm.batches] == [0, 1, 1, 3]


def test_experience_that_is_too_old_is_counted_and_not_used() -> None:
    learner, algorithm = learner_of(steps=12, max_age=1)
    for turn in range(4):
        learner.learn(experience(turn, version=0))
    assert len(algorithm.batches) == 2
    assert learner.buffer.counts == {"added": 24, "too_old": 24}
    assert learner.steps == 48


def test_the_algorithm_receives_the_progress_of_the_run() -> None:
    learner, algorithm = learner_of(steps=12, total_steps=100)
    learner.learn(experience(0))
    assert algorithm.progress == [Progress(0, 100), Progress(12, 100)]


def test_priorities_are_returned_to_the_buffer() -> None:
    buffer = PrioritizedBuffer(100, Ratio(1, 0, 64), np.random.default_rng(0))
    Learner(RecordingAlgorithm(), buffer).learn(experience(0))
    rewards = np.concatenate([part.reward for part in experience(0)])
    np.testing.assert_allclose(buffer.state()["leaves"], (np.abs(rewards) + 1e-6) ** 0.6, rtol=1e-6)


def test_statistics_of_observations_change_only_after_the_update() -> None:
    learner, algorithm = learner_of(steps=24, observations=ObservationStatistics(problem().observation))
    for turn in range(2):
        learner.learn(experience(turn))
    assert algorithm.events == ["update", "standardize"]
    acted = [part.observation["observation"][:-1] for turn in range(2) for part in experience(turn)]
    mean, scale = algorithm.statistics["observation"]
    np.testing.assert_allclose(mean, np.concatenate(acted).mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(scale, 1.0 / np.concatenate(acted).std(axis=0), rtol=1e-5)


def test_rewards_are_scaled_for_the_algorithm_only() -> None:
    learner, algorithm = learner_of(steps=12, rewards=RewardScale(0.9))
    segments = experience(0)
    learner.learn(segments)
    (batch,) = algorithm.batches
    factor = batch.reward[0, :6] / segments[0].reward
    np.testing.assert_allclose(factor, factor[0], rtol=1e-5)
    assert factor[0] != pytest.approx(1.0, abs=0.01)
    assert np.array_equal(segments[0].reward, experience(0)[0].reward)


def test_a_call_without_experience_changes_nothing() -> None:
    statistics = ObservationStatistics(problem().observation)
    learner, _ = learner_of(observations=statistics, rewards=RewardScale(0.9))
    assert learner.learn([]) == {}
    assert (learner.steps, learner.store.latest) == (0, 0)


def test_exploration_continues_from_the_restored_step() -> None:
    def learner() -> Learner:
        config = DQNConfig(learning_starts=0, batch_size=4, exploration_fraction=0.5)
        buffer = UniformBuffer(100, config.pace(100), Seeds(0).generator("replay"))
        return Learner(config.build(problem()), buffer, total_steps=48)

    original, resumed = learner(), learner()
    original.learn(experience(0))
    resumed.restore(original.state())
    (epsilon,) = layout_of(resumed.algorithm.policies.explore.program).views(resumed.store.newest.blob)["epsilon"]
    # 12 of the 24 steps over which ε falls from 1 to 0.05.
    assert epsilon == pytest.approx(1.0 - 0.5 * 0.95)
    assert (
        resumed.algorithm.train_state.policy_weights().tobytes()
        == original.algorithm.train_state.policy_weights().tobytes()
    )
