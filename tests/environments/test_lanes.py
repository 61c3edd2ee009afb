from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rl4sys.environments import Grade, Lanes, UnsupportedSpace
from rl4sys.environments.lanes import RewardMismatch
from rl4sys.experience import ArraySpec, Ending
from rl4sys.seeding import Seeds

from .samples import SEEDS, Fixed, Walk, maker, play


class BothEndings(Walk):
    """Ends at once, terminated and truncated together."""

    def step(self, action: object) -> object:
        return self._see(), 1.0, True, True, {}


class SeveralRewards(Walk):
    """Gives a reward for each of two things at once."""

    def step(self, action: object) -> object:
        return self._see(), np.ones(2), False, False, {}


def test_lanes_do_what_single_environments_do() -> None:
    lanes = Lanes(maker("CartPole-v1"), 1, SEEDS, Grade.E1)
    environment = gymnasium.make("CartPole-v1")
    expected, _ = environment.reset(seed=SEEDS.integer("environment", 0) % 2**31)
    assert lanes.reset()["observation"][0].tolist() == expected.tolist()
    for action in np.random.default_rng(0).integers(0, 2, 100).tolist():
        expected, _, terminated, truncated, _ = environment.step(action)
        step = lanes.step(np.array([action]))
        if terminated or truncated:
            assert step.final_observation[0]["observation"].tolist() == expected.tolist()
            expected, _ = environment.reset()
        assert step.observation["observation"][0].tolist() == expected.tolist()


def test_lanes_differ_from_each_other_and_repeat_themselves() -> None:
    first, second = (Lanes(maker("CartPole-v1"), 2, SEEDS, Grade.E1).reset()["observation"] for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_the_endings_tell_time_limits_from_ends() -> None:
    for ending in (Ending.TERMINATED, Ending.TRUNCATED):
        make = maker("rl4sys/Truncation-v0", horizon=2, ending=ending.name.lower())
        lanes = Lanes(make, 2, SEEDS, Grade.E1)
        lanes.reset()
        assert [step.ending.tolist() for step in play(lanes, 3)] == [[0, 0], [ending, ending], [0, 0]]


def test_termination_wins_when_both_are_true() -> None:
    lanes = Lanes(BothEndings, 1, SEEDS, Grade.E1)
    lanes.reset()
    assert play(lanes, 1)[0].ending.tolist() == [Ending.TERMINATED]


def test_a_reward_that_is_not_one_number_is_refused() -> None:
    lanes = Lanes(SeveralRewards, 1, SEEDS, Grade.E1)
    lanes.reset()
    with pytest.raises(RewardMismatch, match=r"gave array\(\[1\., 1\.\]\) as a reward; expected one number"):
        play(lanes, 1)


def test_the_final_observation_is_the_true_one_and_stays() -> None:
    lanes = Lanes(maker("rl4sys/TwoStepDiscount-v0"), 1, SEEDS, Grade.E1)
    lanes.reset()
    steps = play(lanes, 6)
    finals = [step.final_observation[0]["observation"].tolist() for step in steps[1::2]]
    assert finals == [[2.0]] * 3
    assert [step.observation["observation"].item() for step in steps] == [1, 0, 1, 0, 1, 0]


def test_finished_episodes_are_summed_in_double_precision_and_drained_once() -> None:
    lanes = Lanes(maker("rl4sys/Truncation-v0", horizon=3), 2, SEEDS, Grade.E3)
    lanes.reset()
    play(lanes, 7)
    episodes = lanes.episodes()
    assert [(e.lane, e.return_, e.length, e.ending) for e in episodes] == [
        (lane, 3.0, 3, Ending.TRUNCATED) for _ in range(2) for lane in range(2)
    ]
    assert lanes.episodes() == []


def test_a_mask_in_info_becomes_an_observation() -> None:
    lanes = Lanes(maker("rl4sys/Identity-v0", n=4, masked=True), 2, SEEDS, Grade.E1)
    assert lanes.spec.observation[-1] == ArraySpec("action_mask", "bool", (4,))
    lanes.reset()
    for step in play(lanes, 20):
        wanted = step.observation["observation"].astype(bool)
        assert step.observation["action_mask"][wanted].all()
        assert all(final["action_mask"].shape == (4,) for final in step.final_observation.values())


def test_a_mask_of_a_multi_discrete_action_may_come_in_parts() -> None:
    info = {"action_mask": (np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8))}
    box = spaces.Box(0, 1, (1,))
    make = lambda: Fixed(box, np.zeros(1), spaces.MultiDiscrete([2, 3]), info)  # noqa: E731
    assert Lanes(make, 1, SEEDS, Grade.E1).reset()["action_mask"].tolist() == [[True, False, False, True, True]]


def test_a_mask_for_continuous_actions_is_refused() -> None:
    box = spaces.Box(0, 1, (1,))
    with pytest.raises(UnsupportedSpace, match="discrete"):
        Lanes(lambda: Fixed(box, np.zeros(1), box, {"action_mask": np.ones(1)}), 1, SEEDS, Grade.E1)


def test_the_environment_gets_a_clipped_action() -> None:
    made: list[Fixed] = []

    def make() -> Fixed:
        made.append(Fixed(spaces.Box(0, 1, (1,)), np.zeros(1), spaces.Box(-1, 2, (1,))))
        return made[-1]

    lanes = Lanes(make, 1, SEEDS, Grade.E3)
    lanes.reset()
    lanes.step(np.array([[9.0]], np.float32))
    assert made[-1].actions[0].tolist() == [2.0]


def test_stepping_or_saving_before_the_reset_or_with_too_few_actions_is_refused() -> None:
    lanes = Lanes(Walk, 2, SEEDS, Grade.E1)
    with pytest.raises(ValueError, match="after reset"):
        lanes.step(np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="before the first reset"):
        lanes.state()
    lanes.reset()
    with pytest.raises(ValueError, match="expected 2"):
        lanes.step(np.zeros(1, np.int64))


def test_the_action_log_does_not_outgrow_the_running_episodes() -> None:
    lanes = Lanes(maker("rl4sys/Bandit-v0"), 1, SEEDS, Grade.E1)
    lanes.reset()
    for _ in range(3000):
        lanes.step(np.zeros(1, np.int64))
    assert lanes._log is not None
    assert len(lanes._log._batches) < 1100


def test_reseeded_lanes_repeat_what_new_lanes_with_these_seeds_do() -> None:
    used = Lanes(maker("CartPole-v1"), 2, SEEDS, Grade.E1)
    used.reset()
    for _ in range(5):
        used.step(np.array([0, 1]))
    other = Seeds(SEEDS.integer("other"))
    used.reseed(other)
    first = {name: array.copy() for name, array in used.reset().items()}
    new = Lanes(maker("CartPole-v1"), 2, other, Grade.E1)
    np.testing.assert_equal(first, new.reset())
    np.testing.assert_equal(used.step(np.array([1, 0])).observation, new.step(np.array([1, 0])).observation)
