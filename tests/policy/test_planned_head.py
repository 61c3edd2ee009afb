"""Planning with the cross-entropy method over a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import BoxAction, Head, Memory, NumpyPolicy, PolicySpec, ProgramBuilder
from rl4sys.policy.planned_head import SearchSettings, search
from rl4sys.wire import ContractViolation, require_decides

from .pendulum_model import PendulumModel

SETTINGS = {
    "reward": "reward",
    "horizon": 3,
    "iterations": 4,
    "candidates": 64,
    "elites": 8,
    "initial_std": 0.5,
    "min_std": 0.01,
    "momentum": 0.1,
    "discount": 1.0,
}


def policy(*, drawn: bool = False, tensors: tuple[str, ...] = (), **settings: Any) -> NumpyPolicy:
    """State s, next s + a; the reward is −softplus(−(s + a)) and so grows with s. `drawn`: plus noise."""
    model = ProgramBuilder((ArraySpec("action", "float32", (1,)),))
    state = model.memory("state", (1,))
    moved = model.op("add", (state, "action"), (1,))
    if drawn:
        moved = model.op("add", (moved, model.chance("noise", 1, "normal")), (1,))
    negative = model.op("scale", (moved,), (1,), factor=-1.0, offset=0.0)
    cost = model.op("softplus", (negative,), (1,))
    reward = model.op("scale", (cost,), (1,), factor=-1.0, offset=0.0)
    model.remember(state, moved)
    builder = ProgramBuilder((ArraySpec("state", "float32", (1,)),))
    for name in tensors:
        builder.tensor(name, 1)
    head = Head("planned", ("state",), tensors, settings={**SETTINGS, "reward": reward, **settings})
    return NumpyPolicy(PolicySpec(BoxAction((-2.0,), (6.0,)), builder.program(), head, model.program()))


def act(planner: NumpyPolicy, states: list[float], noise: Array | None = None) -> Array:
    rows = np.array(states, np.float32)[:, None]
    if noise is None:
        noise = np.random.default_rng(0).random((len(rows), planner.noise_size), np.float32)
    return planner.act({"state": rows}, noise, planner.initial_carry(len(rows))).action


def remembering(planner: NumpyPolicy) -> NumpyPolicy:
    """The same policy, which continues from its last plan."""
    spec = planner.spec
    head = replace(spec.head, inputs=("state", "plan"), settings={**spec.head.settings, "next": "plan.next"})
    carry = (Memory("plan", (3, 1), "plan.next"),)
    return NumpyPolicy(replace(spec, program=replace(spec.program, carry=carry), head=head))


def test_it_moves_to_where_the_reward_is() -> None:
    assert act(policy(), [-2.0])[0, 0] > 4.0


def test_equal_noise_gives_equal_plans_and_other_noise_others() -> None:
    planner = policy(iterations=1)
    same = np.full((2, planner.noise_size), 0.25, np.float32)
    other = np.full((2, planner.noise_size), 0.75, np.float32)
    assert act(planner, [0.0, 0.0], same).tolist() == act(planner, [0.0, 0.0], same).tolist()
    assert act(planner, [0.0, 0.0], same).tolist() != act(planner, [0.0, 0.0], other).tolist()


@pytest.mark.parametrize("drawn", [False, True])
def test_a_row_is_planned_alike_alone_and_among_others(drawn: bool) -> None:
    planner, states = policy(drawn=drawn), [-1.0, 0.5, 2.0]
    noise = np.random.default_rng(0).random((3, planner.noise_size), np.float32)
    together = act(planner, states, noise)
    alone = [act(planner, [state], noise[row : row + 1])[0] for row, state in enumerate(states)]
    by_row, _ = planner.act_on_rows({"state": np.array(states, np.float32)[:, None]}, noise)
    assert together.tolist() == np.stack(alone).tolist() == by_row.action[:3].tolist()


def test_actions_stay_within_their_bounds_with_any_noise() -> None:
    planner = policy(tensors=("std", "epsilon"), initial_std=5.0)
    planner.load(np.array([3.0, 0.5], np.float32))
    chosen = act(planner, [0.0] * 50)
    assert chosen.min() >= -2.0
    assert chosen.max() <= 6.0
    assert len(set(chosen[:, 0].tolist())) > 20


def test_with_epsilon_one_actions_are_uniform_and_nothing_is_planned() -> None:
    planner = policy(tensors=("std", "epsilon"))
    planner.load(np.array([0.0, 1.0], np.float32))
    chosen = act(planner, [1e38] * 2_000)[:, 0]
    assert abs(chosen.mean() - 2.0) < 0.2
    assert abs(chosen.std() - 8.0 / np.sqrt(12.0)) < 0.1


def test_the_next_search_starts_from_the_rest_of_the_last_plan() -> None:
    planner = remembering(policy(iterations=1, initial_std=1e-6, min_std=0.0))
    last = {"plan": np.array([[[0.25], [0.5], [-0.5]]], np.float32)}
    decision = planner.act({"state": np.zeros((1, 1), np.float32)}, np.zeros((1, 4), np.float32), last)
    assert decision.action[0, 0] == pytest.approx(2.0 + 4.0 * 0.25, abs=1e-4)
    assert decision.carry["plan"][0, :, 0].tolist() == pytest.approx([0.5, -0.5, 0.0], abs=1e-4)


def test_predictions_that_overflow_give_no_finite_action() -> None:
    with np.errstate(all="ignore"):
        decision = act(policy(), [float("-inf")])
    assert np.isnan(decision).all()


@pytest.mark.parametrize(
    "wrong", [{"horizon": 0}, {"candidates": 4, "elites": 5}, {"iterations": 1.5}, {"momentum": "much"}]
)
def test_settings_that_make_no_search_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        act(policy(**wrong), [0.0])


def test_a_plan_without_a_model_is_refused() -> None:
    spec = replace(policy().spec, model=None)
    with pytest.raises(ValueError, match="needs a model"):
        act(NumpyPolicy(spec), [0.0])


@pytest.mark.parametrize("wrong", [{"horizon": 10_000, "candidates": 10_000}, {"candidates": 1 << 25, "horizon": 1}])
def test_a_search_from_outside_is_limited(wrong: dict[str, Any]) -> None:
    with pytest.raises(ContractViolation, match="a decision predicts"):
        require_decides(policy(iterations=1, **wrong).spec)


def test_a_planner_from_outside_that_can_decide_is_accepted() -> None:
    require_decides(remembering(policy(drawn=True)).spec)


def test_the_spec_of_a_planner_round_trips_through_json() -> None:
    spec = remembering(policy(drawn=True)).spec
    assert PolicySpec.from_json(spec.to_json()) == spec


class Distance:
    """Rewards actions near 0.3, whatever the state."""

    def __init__(self, rows: int) -> None:
        self.action, self.reward = np.zeros((rows, 2), np.float32), np.zeros(rows, np.float32)

    def start(self, state: Sequence[Array]) -> None:
        self.reward.fill(0.0)

    def step(self, generator: np.random.Generator) -> None:
        self.reward[:] = -np.square(self.action - np.float32(0.3)).sum(axis=1)


def test_the_distribution_is_fitted_as_in_float64() -> None:
    settings, start = SearchSettings(3, 2, 20, 5, 0.8, 0.1, 0.25, 0.9), np.full((3, 2), -0.2, np.float32)
    drawn, mean, std = np.random.default_rng(4), start.astype(np.float64), np.full((3, 2), 0.8)
    for _ in range(2):
        normal = drawn.standard_normal((3, 20, 2), np.float32).astype(np.float64)
        candidates = np.clip(mean[:, None] + std[:, None] * normal, -1.0, 1.0)
        rewards = -np.square(candidates - 0.3).sum(axis=2)
        best = candidates[:, np.argsort(-(0.9 ** np.arange(3)[:, None] * rewards).sum(axis=0))[:5]]
        mean = 0.25 * mean + 0.75 * best.mean(axis=1)
        std = 0.25 * std + 0.75 * np.maximum(best.std(axis=1), 0.1)
    found = search(Distance(20), [], start, settings, np.random.default_rng(4))
    np.testing.assert_allclose(found, mean, atol=1e-6)


def test_it_swings_up_a_pendulum_whose_dynamics_it_knows() -> None:
    settings = SearchSettings(20, 3, 100, 10, 0.5, 0.05, 0.1, 1.0)
    model, environment = PendulumModel(100), gymnasium.make("Pendulum-v1")
    returns = []
    for episode in range(3):
        environment.reset(seed=episode)
        plan, rewards = np.zeros((20, 1), np.float32), 0.0
        for step in range(200):
            state = np.array(environment.unwrapped.state, np.float32)  # type: ignore[attr-defined]
            plan = search(model, [state], plan, settings, np.random.default_rng([episode, step]))
            rewards += float(environment.step(2.0 * plan[0])[1])
            plan = np.concatenate([plan[1:], np.zeros((1, 1), np.float32)])
        returns.append(rewards)
    assert np.mean(returns) >= -200.0
