"""A learner that is saved and restored midway produces the same weights, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from algorithms.problems import problem
from rl4sys.algorithms import AlgorithmConfig, DQNConfig, PPOConfig
from rl4sys.learning import Learner, ObservationStatistics, RewardScale
from rl4sys.replay import BUFFERS, PrioritizedBuffer, UniformBuffer
from rl4sys.seeding import Seeds
from rl4sys.state import digest, from_text, to_text

from .fakes import experience

TURNS = 8
Replay = UniformBuffer | PrioritizedBuffer
PPO = PPOConfig(epochs=2, minibatch_size=7, lr=0.01)
DQN = DQNConfig(batch_size=8, learning_starts=5, target_update_interval=5, train_frequency=2, n_step=2, dueling=True)
CASES = [
    pytest.param(PPO, {"type": "trajectory", "size": 20}, id="ppo"),
    pytest.param(DQN, {"type": "uniform", "size": 50}, id="dqn, uniform"),
    pytest.param(DQN, {"type": "prioritized", "size": 50}, id="dqn, prioritized"),
]


def maker(config: AlgorithmConfig, buffer: dict[str, Any]) -> Callable[[int], Learner]:
    """A function that builds learners with different seeds."""

    def make(seed: int) -> Learner:
        pace = config.pace(buffer["size"])
        return Learner(
            config.build(problem(standardize=True)),
            BUFFERS.parse(buffer).build(pace, Seeds(seed).generator("replay"), config.window),
            total_steps=12 * TURNS,
            observations=ObservationStatistics(problem().observation),
            rewards=RewardScale(config.gamma),
        )

    return make


def feed(learner: Learner, turns: range) -> list[dict[str, float]]:
    """The metrics of every turn. Every other turn has experience of an older policy."""
    return [dict(learner.learn(experience(turn, version=max(0, learner.store.latest - turn % 2)))) for turn in turns]


def copied(original: Learner, other: Learner) -> Learner:
    """The other learner, restored as if from a file."""
    other.restore(from_text(to_text(original.state())))
    buffer, twin = original.buffer, other.buffer
    if isinstance(buffer, Replay) and isinstance(twin, Replay):
        twin.load_rows(buffer.first, buffer.rows(buffer.first, buffer.total))
    return other


@pytest.mark.parametrize(("config", "buffer"), CASES)
def test_a_restored_learner_continues_to_the_bit(config: AlgorithmConfig, buffer: dict[str, Any]) -> None:
    make = maker(config, buffer)
    original = make(0)
    feed(original, range(5))
    resumed = copied(original, make(1))
    assert feed(resumed, range(5, TURNS)) == feed(original, range(5, TURNS))
    assert digest(resumed.state()) == digest(original.state())
    assert resumed.store.newest.blob.tobytes() == original.store.newest.blob.tobytes()


@pytest.mark.parametrize(("config", "buffer"), CASES)
def test_a_learner_without_updates_can_be_restored(config: AlgorithmConfig, buffer: dict[str, Any]) -> None:
    make = maker(config, buffer)
    resumed = copied(make(0), make(0))
    assert feed(resumed, range(3)) == feed(make(0), range(3))


@pytest.mark.parametrize(("config", "buffer"), CASES)
def test_equal_learners_produce_equal_weights(config: AlgorithmConfig, buffer: dict[str, Any]) -> None:
    make = maker(config, buffer)
    one, other = make(0), make(0)
    feed(one, range(4))
    feed(other, range(4))
    assert digest(one.state()) == digest(other.state())
    assert one.updates > 0
