from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl4sys.environments import Grade, Lanes, PointReach, make_gymnasium, probe
from rl4sys.environments.goals import GOALS, WALL
from rl4sys.experience import Ending

from .samples import SEEDS, maker, play, resumed

POINT = maker("rl4sys/PointReach-v0")


def steered(observation: Any) -> Any:
    """A push towards the goal that allows for the speed."""
    position, velocity = np.split(observation["observation"], 2)
    return 10.0 * (observation["desired_goal"] - position) - 10.0 * velocity


@pytest.mark.filterwarnings("ignore:.*render:UserWarning")
def test_the_point_passes_the_check_of_gymnasium() -> None:
    check_env(PointReach(), skip_render_check=True)


def test_the_point_can_be_steered_to_its_goal_and_kept_there() -> None:
    environment = make_gymnasium("rl4sys/PointReach-v0", {})
    for seed in range(20):
        observation, _ = environment.reset(seed=seed)
        for _ in range(50):
            observation, reward, terminated, truncated, info = environment.step(steered(observation))
        assert (reward, terminated, truncated, info["is_success"]) == (0.0, False, True, True)


def test_chance_seldom_finds_the_goal() -> None:
    lanes = Lanes(POINT, 8, SEEDS, Grade.E0)
    lanes.reset()
    play(lanes, 200)
    assert np.mean([episode.return_ for episode in lanes.episodes()]) < -40.0


def test_rewards_are_computed_for_whole_batches() -> None:
    achieved = np.array([[[0.0, 0.0], [0.5, 0.5]], [[0.05, 0.0], [0.2, 0.0]]], np.float32)
    reward = PointReach().compute_reward(achieved, np.zeros(2, np.float32), {})
    assert reward.tolist() == [[0.0, -1.0], [0.0, -1.0]]
    assert reward.dtype == np.float32


def test_the_reward_of_a_step_is_the_computed_one() -> None:
    environment = PointReach()
    environment.reset(seed=3)
    for _ in range(30):
        observation, reward, *_, info = environment.step(environment.action_space.sample())
        assert reward == environment.compute_reward(observation["achieved_goal"], observation["desired_goal"], info)


def test_walls_stop_the_point() -> None:
    environment = PointReach(dimensions=1)
    environment.reset(seed=0)
    for _ in range(60):
        observation, *_ = environment.step(np.ones(1))
    assert observation["observation"].tolist() == [1.0, 0.0]


def test_lanes_show_the_goals_as_arrays_and_truncate() -> None:
    lanes = Lanes(POINT, 2, SEEDS, Grade.E0)
    lanes.reset()
    assert {name: array.shape for name, array in lanes.observation.items()} == {
        "observation": (2, 4),
        "achieved_goal": (2, 2),
        "desired_goal": (2, 2),
    }
    assert set(play(lanes, 50)[-1].ending.tolist()) == {Ending.TRUNCATED}


def test_the_point_resumes_to_the_bit() -> None:
    assert probe(POINT, SEEDS) is Grade.E0
    lanes, is_same = resumed(POINT, Grade.E0)
    assert is_same
    assert lanes.inexact == []


@pytest.mark.parametrize("arguments", [{"dimensions": 0}, {"tolerance": 0.0}])
def test_an_arena_without_an_answer_is_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match="choose"):
        PointReach(**arguments)


def made(**kwargs: float) -> gymnasium.Env:
    return make_gymnasium("rl4sys/MultiGoal-v0", kwargs)


def test_it_is_an_environment_as_gymnasium_wants_them() -> None:
    check_env(made().unwrapped, skip_render_check=True)


def test_it_saves_itself_so_that_a_resumed_run_is_exact() -> None:
    assert probe(made, SEEDS) is Grade.E0


@pytest.mark.parametrize("goal", range(4))
def test_each_goal_is_four_steps_away_and_worth_the_same(goal: int) -> None:
    environment = made(start_spread=0.0)
    environment.reset(seed=0)
    steps = [environment.step(GOALS[goal] / 5.0) for _ in range(4)]
    assert [reward for _, reward, *_ in steps] == pytest.approx([-4.0, -3.0, -2.0, 9.0])
    assert [terminated for _, _, terminated, *_ in steps] == [False, False, False, True]
    assert steps[-1][4]["goal"] == goal


def test_episodes_start_near_the_middle_and_a_seed_repeats_them() -> None:
    environment = made()
    starts = np.array([environment.reset(seed=seed)[0] for seed in range(200)])
    assert np.abs(starts.std(axis=0) - 0.1).max() < 0.03
    np.testing.assert_array_equal(environment.reset(seed=3)[0], starts[3])


def test_walls_stop_the_point_and_more_than_a_full_step_is_one() -> None:
    environment = made(start_spread=0.0)
    environment.reset(seed=0)
    assert environment.step(np.array([3.0, -9.0]))[0].tolist() == [1.0, -1.0]
    for _ in range(9):
        observation, *_ = environment.step(np.array([1.0, -1.0]))
    assert observation.tolist() == [WALL, -WALL]


def test_time_runs_out_without_a_termination() -> None:
    environment = made()
    environment.reset(seed=0)
    *_, last = (environment.step(np.zeros(2)) for _ in range(30))
    assert last[2:4] == (False, True)


def test_a_spread_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"start_spread=-1 is no deviation"):
        made(start_spread=-1)
