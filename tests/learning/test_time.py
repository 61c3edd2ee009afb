"""Discounts by elapsed time, and centred rewards."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.replay.segments import segment

from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import ConfigError, parse
from rl4sys.engine import AlgorithmConfig, generalized_advantage
from rl4sys.engine.tensor_batch import n_step_return
from rl4sys.engine.tensor_streams import stream_returns
from rl4sys.experience import Ending, Segment
from rl4sys.learning.normalizers import RewardScale
from rl4sys.learning.reward_centering import RewardCentering
from rl4sys.learning.time_discount import NoElapsedTime, TimeDiscount
from rl4sys.replay import OnceFresh, Ratio, TrajectoryBuffer, UniformBuffer

ELAPSED = np.array([0.5, 2.0, 0.0, 30.0], np.float32)
GAMMA = np.exp(-ELAPSED.astype(np.float64) / 30.0)


def timed(ending: Ending = Ending.TRUNCATED) -> Segment:
    return TimeDiscount(30.0).applied(replace(segment(4, ending=ending), elapsed=ELAPSED))


def test_what_follows_after_the_horizon_is_worth_one_over_e() -> None:
    discount = timed().discount()
    np.testing.assert_allclose(discount, GAMMA, rtol=1e-7)
    assert discount[3] == pytest.approx(math.exp(-1.0))
    assert timed(Ending.TERMINATED).discount().tolist() == [*discount[:3], 0.0]


def test_advantages_by_time_equal_the_sum_that_defines_them() -> None:
    buffer = TrajectoryBuffer(OnceFresh(4, 0))
    buffer.add(timed())
    (batch,) = buffer.due()
    value = np.array([[1.0, -2.0, 0.5, 3.0, 7.0]], np.float32)
    found = generalized_advantage(batch.reward, batch.discount, batch.acted, value, 1.0, 0.9)
    reward, values = batch.reward[0, :4].astype(np.float64), value[0].astype(np.float64)
    delta = reward + GAMMA * values[1:] - values[:-1]
    expected = [sum(np.prod(0.9 * GAMMA[t:k]) * delta[k] for k in range(t, 4)) for t in range(4)]
    np.testing.assert_allclose(found[0, :4], expected, rtol=1e-5)


def test_replayed_transitions_are_discounted_by_their_own_time() -> None:
    buffer = UniformBuffer(100, Ratio(1.0, 0, 64), np.random.default_rng(0))
    buffer.add(timed())
    batch = next(buffer.due())
    reward, discount = n_step_return(batch, 1.0)
    steps = reward.astype(int) - 1
    np.testing.assert_allclose(discount, GAMMA[steps], rtol=1e-6)


def test_returns_of_several_steps_within_sequences_multiply_their_discounts() -> None:
    reward, discount = np.ones((1, 5), np.float32), np.append(GAMMA, 1.0).astype(np.float32)[None]
    acted = np.array([[True, True, True, True, False]])
    found = stream_returns(reward, discount, acted, np.float32(1.0), 3)
    assert found.reward[0, 0] == pytest.approx(1 + GAMMA[0] + GAMMA[0] * GAMMA[1])
    assert found.discount[0, 0] == pytest.approx(GAMMA[:3].prod())


def test_an_incomplete_batch_keeps_its_discounts_when_it_is_saved() -> None:
    buffer, other = TrajectoryBuffer(OnceFresh(8, 0)), TrajectoryBuffer(OnceFresh(8, 0))
    buffer.add(timed())
    other.restore(buffer.state())
    assert "time_discount" not in TrajectoryBuffer(OnceFresh(8, 0)).state()["segments"]
    for each in (buffer, other):
        each.add(timed())
    np.testing.assert_array_equal(next(other.due()).discount, next(buffer.due()).discount)


def test_experience_without_times_is_refused_by_name() -> None:
    with pytest.raises(NoElapsedTime, match=r"client/agent/0 gives no times.*info\['now'\].*act\(observation, now="):
        TimeDiscount(30.0).applied(segment(2))


def test_the_scale_of_rewards_follows_returns_by_time() -> None:
    scale = RewardScale(1.0)
    scale.observe([timed()])
    reward = segment(4).reward.astype(np.float64)
    returns = [reward[0]]
    for t in range(1, 4):
        returns.append(returns[-1] * GAMMA[t - 1] + reward[t])
    assert float(scale.state()["moments"]["mean"]) == pytest.approx(np.mean(returns), rel=1e-6)


@pytest.mark.parametrize(
    ("given", "seconds"), [("30s", 30.0), ("500ms", 0.5), ("5min", 300.0), ("2h", 7200.0), ("1.5 s", 1.5)]
)
@pytest.mark.parametrize("name", ["ppo", "dqn", "sac"])
def test_a_horizon_is_a_time_with_its_unit(name: str, given: str, seconds: float) -> None:
    config = ALGORITHMS.parse({"name": name, "horizon": given})
    assert (config.horizon_seconds, config.step_gamma) == (pytest.approx(seconds), 1.0)
    assert ALGORITHMS.parse({"name": name}).step_gamma == 0.99


@pytest.mark.parametrize("given", [30, "30", "-5s", "0s", "soon", "5 minutes", True])
def test_any_other_horizon_is_refused_in_one_sentence(given: object) -> None:
    with pytest.raises(ConfigError, match=r"horizon: .*expected a time above 0 with its unit: 500ms, 30s, 5min or 2h"):
        ALGORITHMS.parse({"name": "ppo", "horizon": given})


@pytest.mark.parametrize("name", ["td3", "ddpg", "sql"])
def test_algorithms_that_do_not_discount_by_time_refuse_a_horizon(name: str) -> None:
    with pytest.raises(ConfigError, match="horizon"):
        ALGORITHMS.parse({"name": name, "horizon": "30s"})


def test_rewards_are_centred_by_their_running_mean() -> None:
    centering = RewardCentering()
    centering.observe([segment(4), segment(2, start=4)])
    assert centering.mean == pytest.approx(np.mean([1, 2, 3, 4, 5, 6]))
    buffer = TrajectoryBuffer(OnceFresh(4, 0))
    buffer.add(segment(4))
    (batch,) = buffer.due()
    assert centering.centered(batch).reward[0].tolist() == [-2.5, -1.5, -0.5, 0.5, 0.0]


def test_windows_are_centred_as_far_as_they_have_steps() -> None:
    centering = RewardCentering()
    centering.observe([segment(4)])
    buffer = UniformBuffer(100, Ratio(1.0, 0, 64), np.random.default_rng(0), n_step=3)
    buffer.add(segment(4, ending=Ending.TERMINATED))
    batch = next(buffer.due())
    last = batch.span == 1
    assert last.any()
    assert (centering.centered(batch).reward[last] == [1.5, 0.0, 0.0]).all()


def test_the_mean_forgets_what_is_long_ago_and_resumes() -> None:
    centering, other = RewardCentering(), RewardCentering()
    for _ in range(100):
        centering.observe([replace(segment(1000), reward=np.zeros(1000, np.float32))])
    centering.observe([replace(segment(1000), reward=np.ones(1000, np.float32))])
    assert centering.mean == pytest.approx(0.1)
    other.restore(centering.state())
    assert (other.mean, other.state()) == (centering.mean, centering.state())


def test_nothing_of_it_is_in_a_config_that_does_not_use_it() -> None:
    config: AlgorithmConfig = ALGORITHMS.parse({"name": "ppo"})
    assert (config.imitate, config.center_rewards, config.horizon_seconds) == (None, False, None)
    assert parse(type(config), {"center_rewards": True}).center_rewards
