from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from algorithms.problems import dqn
from rl4sys.environments import EpisodeSummary, Grade, GymnasiumConfig, Step
from rl4sys.experience import Array, Arrays, Ending
from rl4sys.learning import Evaluation, evaluate, evaluation
from rl4sys.learning.evaluation import EndlessEpisode
from rl4sys.seeding import Seeds


class Clocks:
    """Every episode of lane i has i + 1 steps with reward 1."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.closed = False
        self._step = 0
        self._finished: list[EpisodeSummary] = []

    def reset(self) -> Arrays:
        return {"observation": np.zeros((self.count, 3), np.float32)}

    def step(self, action: Array) -> Step:
        self._step += 1
        ended = [lane for lane in range(self.count) if self._step % (lane + 1) == 0]
        self._finished += [EpisodeSummary(lane, lane + 1.0, lane + 1, Ending.TERMINATED) for lane in ended]
        blank = np.zeros(self.count)
        return Step(self.reset(), blank, blank, {lane: {} for lane in ended}, None)

    def episodes(self) -> list[EpisodeSummary]:
        finished, self._finished = self._finished, []
        return finished

    def close(self) -> None:
        self.closed = True


class Broken(Clocks):
    def step(self, action: Array) -> Step:
        raise RuntimeError("the simulator crashed")


class Endless(Clocks):
    """No episode ever ends."""

    def step(self, action: Array) -> Step:
        return super().step(action)._replace(final_observation={})

    def episodes(self) -> list[EpisodeSummary]:
        return []


def evaluated(make: Callable[[Seeds, int], Clocks], episodes: int) -> Evaluation:
    algorithm = dqn()
    return evaluate(algorithm.policies.exploit, algorithm.train_state.policy_weights(), make, episodes, Seeds(0))


def test_every_lane_counts_one_episode_even_if_its_episodes_are_short() -> None:
    found = evaluated(lambda seeds, count: Clocks(count), episodes=5)
    assert found.lengths == (1, 2, 3, 4, 5)
    assert found.returns == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert (found.mean, found.deviation) == (3.0, pytest.approx(np.sqrt(2.0)))


def test_many_episodes_run_in_rounds_with_different_seeds() -> None:
    asked: list[tuple[int, int]] = []

    def make(seeds: Seeds, count: int) -> Clocks:
        asked.append((seeds.root, count))
        return Clocks(count)

    assert len(evaluated(make, episodes=20).returns) == 20
    assert [count for _, count in asked] == [16, 4]
    assert asked[0][0] != asked[1][0]


def test_lanes_are_closed_even_if_they_fail() -> None:
    lanes = Broken(2)
    with pytest.raises(RuntimeError, match="crashed"):
        evaluated(lambda seeds, count: lanes, episodes=2)
    assert lanes.closed


def test_an_episode_that_never_ends_is_reported_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_MAX_STEPS", 50)
    lanes = Endless(2)
    with pytest.raises(EndlessEpisode, match=r"did not end within 50 steps.*environment\.max_episode_steps=1000"):
        evaluated(lambda seeds, count: lanes, episodes=2)
    assert lanes.closed


def identity_returns(seed: int) -> tuple[float, ...]:
    environment = GymnasiumConfig(name="rl4sys/Identity-v0")
    algorithm = dqn()
    return evaluate(
        algorithm.policies.explore,
        algorithm.train_state.policy_weights(),
        lambda seeds, count: environment.lanes(seeds, count, Grade.E3),
        episodes=5,
        seeds=Seeds(seed),
    ).returns


def test_the_same_seeds_give_the_same_returns() -> None:
    assert identity_returns(1) == identity_returns(1)
    assert identity_returns(1) != identity_returns(2)
