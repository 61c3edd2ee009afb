from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl4sys.environments import Grade, make_gymnasium, probe
from rl4sys.environments.multi_goal import GOALS, WALL

from .samples import SEEDS


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
