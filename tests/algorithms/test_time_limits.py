"""One state, reward 1 for each step, γ = 0.9: what it is worth depends on how episodes end."""

from __future__ import annotations

import numpy as np
import pytest

from .reference import values
from .training import DQN, PPO, Settings, experiment, trained

GAMMA, HORIZON = 0.9, 5
WITHOUT_END = 1.0 / (1.0 - GAMMA)
# 20 steps in each of eight lanes, in one minibatch: every gradient is that of whole episodes.
STEADY_PPO = {**PPO, "anneal_lr": False, "minibatch_size": 160, "epochs": 8}
FAST_DQN = {**DQN, "target_update_interval": 5, "batch_size": 32, "lr": 0.01}


def worth(algorithm: Settings, ending: str, horizon: int, steps: int) -> float:
    """What the only state is worth after a run, whatever one does."""
    env = {"horizon": horizon, "ending": ending}
    buffer = {"size": 160} if algorithm["name"] == "ppo" else {}
    config = experiment({**algorithm, "gamma": GAMMA}, "Truncation", steps=steps, env=env, buffer=buffer)
    return float(values(trained(config).algorithm, [[1.0]]).mean())


@pytest.mark.parametrize(("horizon", "gae_lambda"), [(1, 0.95), (HORIZON, 0.0), (HORIZON, 0.95)])
def test_ppo_bootstraps_after_a_truncation(horizon: int, gae_lambda: float) -> None:
    # V = 1 + γV, whatever the horizon and λ.
    found = worth({**STEADY_PPO, "gae_lambda": gae_lambda}, "truncated", horizon, steps=12_000)
    assert found == pytest.approx(WITHOUT_END, rel=0.02)


@pytest.mark.parametrize("horizon", [1, HORIZON])
def test_dqn_bootstraps_after_a_truncation(horizon: int) -> None:
    assert worth(FAST_DQN, "truncated", horizon, steps=4_000) == pytest.approx(WITHOUT_END, rel=0.02)


@pytest.mark.parametrize("algorithm", [STEADY_PPO, DQN], ids=["ppo", "dqn"])
def test_there_is_no_value_after_a_termination(algorithm: Settings) -> None:
    assert worth(algorithm, "terminated", horizon=1, steps=2_000) == pytest.approx(1.0, abs=0.02)


def test_for_ppo_a_terminated_episode_is_worth_the_mean_of_what_is_left() -> None:
    # The state does not tell the time, so with λ = 1 the critic learns the mean of (1−γ^m)/(1−γ), m steps being left.
    left = np.arange(1, HORIZON + 1)
    expected = ((1.0 - GAMMA**left) / (1.0 - GAMMA)).mean()
    found = worth({**STEADY_PPO, "gae_lambda": 1.0}, "terminated", HORIZON, steps=4_000)
    assert found == pytest.approx(expected, rel=0.02)


def test_for_ppo_without_a_trace_a_terminated_episode_bootstraps_until_its_end() -> None:
    # With λ = 0 the mean error vanishes: T(1 − V) + (T − 1)γV = 0.
    expected = HORIZON / (HORIZON - (HORIZON - 1) * GAMMA)
    found = worth({**STEADY_PPO, "gae_lambda": 0.0}, "terminated", HORIZON, steps=8_000)
    assert found == pytest.approx(expected, rel=0.02)


def test_for_dqn_a_terminated_episode_bootstraps_until_its_end() -> None:
    # As for PPO without a trace. With T = 2 no error exceeds 1, so the Huber loss is the squared one.
    expected = 2.0 / (2.0 - GAMMA)
    settings = {**DQN, "batch_size": 256, "lr": 0.002}
    assert worth(settings, "terminated", 2, steps=3_000) == pytest.approx(expected, rel=0.05)
