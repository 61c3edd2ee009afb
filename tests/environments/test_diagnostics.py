from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl4sys.environments import Grade, Lanes, diagnostics, make_gymnasium

from .chain_values import chain_values
from .samples import SEEDS, maker, play

NAMES = sorted(
    name for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith(diagnostics.__name__)
)
KINDS = ["discrete", "multi_discrete", "box"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:.*render:UserWarning")
def test_each_diagnostic_environment_passes_the_check_of_gymnasium(name: str, kind: str) -> None:
    if (name, kind) != ("rl4sys/Chain-v0", "multi_discrete"):
        check_env(make_gymnasium(name, {"action": kind}).unwrapped, skip_render_check=True)


def wanted(environment: Any, observation: Any) -> Any:
    """The action that the observation of an identity environment asks for."""
    if isinstance(environment.action_space, gymnasium.spaces.Box):
        return observation
    return observation.reshape(-1, 3).argmax(1).reshape(environment.action_space.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_identity_rewards_exactly_what_it_asks_for(kind: str) -> None:
    environment = make_gymnasium("rl4sys/Identity-v0", {"action": kind, "length": 5})
    observation, _ = environment.reset(seed=1)
    rewards, terminated = [], False
    while not terminated:
        observation, reward, terminated, _, _ = environment.step(wanted(environment, observation))
        rewards.append(reward)
    assert rewards == [1.0] * 5


def test_identity_forbids_what_its_mask_forbids() -> None:
    environment = make_gymnasium("rl4sys/Identity-v0", {"masked": True, "n": 9})
    _, info = environment.reset(seed=1)
    with pytest.raises(ValueError, match="forbidden"):
        environment.step(int(np.argmin(info["action_mask"])))


@pytest.mark.parametrize(
    ("name", "kwargs", "action", "reward"),
    [
        ("Bandit", {}, 2, 1.0),
        ("Bandit", {}, 0, -1.0),
        ("Bandit", {"action": "multi_discrete"}, np.array([2, 0]), 0.0),
        ("Bandit", {"action": "box"}, np.array([0.5]), 1.0),
        ("ConstantReward", {}, 0, 1.0),
        ("ActionReward", {}, 1, 1.0),
        ("ActionReward", {}, 0, -1.0),
    ],
)
def test_one_step_environments_reward_and_end(name: str, kwargs: Any, action: Any, reward: float) -> None:
    environment = make_gymnasium(f"rl4sys/{name}-v0", kwargs)
    environment.reset(seed=0)
    _, got, terminated, _, _ = environment.step(action)
    assert (got, terminated) == (reward, True)


def test_observation_rewards_follow_the_observation() -> None:
    for name in ("ObservationReward", "ObservationActionReward"):
        lanes = Lanes(maker(f"rl4sys/{name}-v0"), 8, SEEDS, Grade.E1)
        seen = lanes.reset()["observation"][:, 0].copy()
        action = (seen > 0).astype(np.int64)
        reward = lanes.step(action).reward
        assert reward.tolist() == (seen if name == "ObservationReward" else np.ones(8)).tolist()


def test_two_step_discount_rewards_the_second_step_only() -> None:
    lanes = Lanes(maker("rl4sys/TwoStepDiscount-v0"), 1, SEEDS, Grade.E1)
    lanes.reset()
    assert [(step.reward.item(), step.ending.item()) for step in play(lanes, 2)] == [(0.0, 0), (1.0, 1)]


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_the_values_of_the_chain_solve_its_bellman_equation(gamma: float) -> None:
    n, small = 6, 0.2
    values = chain_values(n, small, gamma)
    right = np.append(gamma * values[1:], 1.0)
    left = np.append(small, gamma * values[:-1])
    np.testing.assert_allclose(values, np.maximum(left, right))


def test_the_chain_pays_at_both_ends() -> None:
    environment = make_gymnasium("rl4sys/Chain-v0", {"n": 3, "small": 0.2})
    for action, pays in ((1, 1.0), (0, 0.2)):
        environment.reset(seed=0)
        terminated, reward = False, 0.0
        while not terminated:
            _, reward, terminated, _, _ = environment.step(action)
        assert reward == pays


@pytest.mark.parametrize("kind", KINDS)
def test_recall_rewards_what_was_shown_first_when_it_asks(kind: str) -> None:
    environment = make_gymnasium("rl4sys/Recall-v0", {"action": kind, "n": 3, "shortest": 2, "longest": 4})
    first, _ = environment.reset(seed=5)
    remembered = wanted(environment, first[:-1])
    asked, steps, reward = 0.0, 0, 0.0
    while not asked:
        observation, reward, *_ = environment.step(environment.action_space.sample())
        asked, steps = observation[-1], steps + 1
        assert reward == 0.0
        assert not observation[:-1].any()
    assert 3 <= steps <= 5
    assert environment.step(remembered)[1:4] == (1.0, True, False)
