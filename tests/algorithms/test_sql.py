from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import ALGORITHMS, Progress, SQLConfig, UnsuitableActions, run_update
from rl4sys.experience import Array, Transitions
from rl4sys.policy import BoxAction, NumpyPolicy, layout_of

from .actor_critic import (
    ASYMMETRIC,
    ROWS,
    asked,
    built,
    ending,
    q_values,
    require_gradient_of_critics,
    scaled,
    transition_batch,
    with_other_targets,
)
from .networks_of import acting, flat_of
from .problems import DISCRETE, MULTI, problem
from .reference import Weights, gradient, named, network
from .test_svgd import reference

SCALE, VALUED, FIXED, UPDATED, NOISE = 2.5, 6, 5, 4, 3


def sql(**config: Any) -> Any:
    counts = {"value_samples": VALUED, "fixed_particles": FIXED, "updated_particles": UPDATED, "noise_size": NOISE}
    return built("sql", reward_scale=SCALE, **{**counts, **config})


def draws() -> tuple[Array, Array, Array]:
    """The numbers of the first update: uniform actions, then the noise of fixed and of updated particles."""
    generator = asked().torch_generator("samples")
    uniform = 2.0 * torch.rand((ROWS * VALUED, 2), generator=generator) - 1.0
    normal = (torch.randn((ROWS * count, NOISE), generator=generator) for count in (FIXED, UPDATED))
    return tuple(array.double().numpy() for array in (uniform, *normal))  # type: ignore[return-value]


def repeated(observation: Array, count: int) -> Array:
    return np.repeat(observation, count, axis=0)


def sampled(weights: Weights, observation: Array, noise: Array) -> Array:
    """What the sampler makes of noise, before it is squashed."""
    return network(weights, "actor", "actor.action", np.concatenate([observation, noise], axis=1))


def targets(algorithm: Any, flat_targets: Array, batch: Transitions) -> Array:
    """r / α + γ d log ∫ exp min Q_target(s′, a′) da′ (eq. 10 and 11)."""
    following = repeated(batch.next_observation["observation"], VALUED)
    layout = algorithm.critics.optimizer.parameters.layout
    values = q_values(layout, flat_targets, following, draws()[0]).min(axis=0).reshape(ROWS, VALUED)
    soft = np.log(np.exp(values).mean(axis=1) * 4.0)
    return np.asarray(SCALE * batch.reward + 0.9 * batch.discount * soft)


def test_the_gradient_of_the_critics_is_that_of_the_paper() -> None:
    algorithm, batch = sql(), transition_batch()
    target = targets(algorithm, with_other_targets(algorithm.critics), batch)
    require_gradient_of_critics(algorithm, batch, target)


def slope(algorithm: Any, observation: Array, action: Array) -> Array:
    """How the lowest critic's value changes with the action, by central differences."""
    critics, layout = flat_of(algorithm, "critics"), algorithm.critics.optimizer.parameters.layout
    nudges = 1e-5 * np.eye(2)
    ahead, behind = (
        [q_values(layout, critics, observation, action + s * n).min(axis=0) for n in nudges] for s in (1.0, -1.0)
    )
    return np.asarray((np.array(ahead) - np.array(behind)).T / 2e-5)


def test_the_gradient_of_the_sampler_is_that_of_the_paper() -> None:
    algorithm, batch = sql(), transition_batch()
    observation, (_, fixed_noise, updated_noise) = batch.observation["observation"], draws()
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    fixed = sampled(named(layout, flat), repeated(observation, FIXED), fixed_noise)
    action = np.tanh(fixed)
    score = slope(algorithm, repeated(observation, FIXED), action) * (1 - action**2) - 2 * action
    updated = sampled(named(layout, flat), repeated(observation, UPDATED), updated_noise)
    parts = (array.reshape(ROWS, -1, 2) for array in (fixed, score, updated))
    direction = np.concatenate([reference(*one) for one in zip(*parts, strict=True)])

    def loss(weights: Weights) -> float:
        moved = sampled(weights, repeated(observation, UPDATED), updated_noise)
        return -float((direction * moved).sum(axis=1).mean())

    metrics, _ = run_update(algorithm, batch)
    found = acting(algorithm).gradient.numpy()
    np.testing.assert_allclose(found, gradient(loss, layout, flat), rtol=2e-5, atol=2e-6)
    assert metrics["stein"] == pytest.approx(np.sqrt((direction**2).sum(axis=1).mean()), rel=1e-4)


def test_a_state_whose_actions_are_alike_is_worth_their_value_and_the_entropy_of_all() -> None:
    algorithm = sql()
    for parameters in (algorithm.critics.optimizer.parameters, algorithm.critics.target_parameters):
        parameters.flat.zero_()
        parameters.set("critic.value.bias", torch.full((2, 1), 1.5))
    assert run_update(algorithm, transition_batch()).metrics["soft_value"] == pytest.approx(
        1.5 + 2 * math.log(2.0), abs=1e-5
    )


def test_targets_bootstrap_after_a_truncation_and_not_after_a_termination() -> None:
    batch, algorithm = transition_batch(), sql()
    layout, flat = algorithm.critics.optimizer.parameters.layout, flat_of(algorithm, "critics")
    q = q_values(layout, flat, batch.observation["observation"], scaled(batch.action))
    at_end = run_update(algorithm, ending(batch, 0.0)).feedback["priority"]
    going_on = run_update(sql(), ending(batch, 1.0)).feedback["priority"]
    target = targets(algorithm, flat, ending(batch, 1.0))
    np.testing.assert_allclose(at_end, np.abs(q - SCALE * batch.reward).mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(going_on, np.abs(q - target).mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(("steps", "expected"), [(0, 1.0), (100, 1.0), (101, 0.0)])
def test_the_policy_acts_at_random_until_learning_starts(steps: int, expected: float) -> None:
    algorithm = sql(learning_starts=100)
    algorithm.train_state.advance(Progress(steps, None))
    views = layout_of(algorithm.policies.explore.program).views(algorithm.train_state.policy_weights())
    assert views["epsilon"].tolist() == [expected]


def test_the_published_policy_samples_the_same_actions_as_the_learner() -> None:
    algorithm = sql()
    algorithm.train_state.advance(Progress(1))
    observation = transition_batch().observation["observation"]
    policy = NumpyPolicy(algorithm.policies.explore, algorithm.train_state.policy_weights())
    uniform = np.random.default_rng(0).random((ROWS, 2 * NOISE + 3)).astype(np.float32)
    decision = policy.act({"observation": observation}, uniform)
    pairs = uniform[:, : 2 * NOISE].astype(float)
    normal = np.sqrt(-2 * np.log1p(-pairs[:, 0::2])) * np.cos(2 * np.pi * pairs[:, 1::2])
    weights = named(acting(algorithm).layout, flat_of(algorithm))
    np.testing.assert_allclose(scaled(decision.action), np.tanh(sampled(weights, observation, normal)), atol=1e-5)


def test_the_exploit_policy_acts_with_zero_noise() -> None:
    algorithm = sql()
    observation = transition_batch().observation["observation"]
    policy = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    one, other = (
        policy.act({"observation": observation}, np.full((ROWS, policy.noise_size), u, np.float32)).action.copy()
        for u in (0.1, 0.9)
    )
    weights = named(acting(algorithm).layout, flat_of(algorithm))
    raw = sampled(weights, observation, np.zeros((ROWS, NOISE)))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(scaled(one), np.tanh(raw), atol=1e-6)


def test_the_noise_has_the_size_of_the_action_by_default() -> None:
    assert sql(noise_size=None).policies.explore.head.settings["size"] == 2


def test_statistics_of_observations_reach_sampler_critics_and_targets() -> None:
    algorithm = SQLConfig().build(problem(ASYMMETRIC, standardize=True))
    mean, scale = np.full(3, 2.0, np.float32), np.full(3, 0.5, np.float32)
    algorithm.train_state.standardize("observation", mean, scale)
    run_update(algorithm, transition_batch())
    for parameters in (acting(algorithm), algorithm.critics.optimizer.parameters, algorithm.critics.target_parameters):
        assert parameters.views["observation.mean"].tolist() == mean.tolist()
        assert parameters.views["observation.scale"].tolist() == scale.tolist()


@pytest.mark.parametrize("name", ["critic", "actor", "epsilon", "action", "noise"])
def test_an_observation_may_be_called_what_our_tensors_are_called(name: str) -> None:
    known = problem(ASYMMETRIC, standardize=True)
    renamed = replace(known, observation=(replace(known.observation[0], name=name),))
    learner = ALGORITHMS.parse({"name": "sql"}).build(renamed)
    learner.train_state.standardize(name, np.ones(3, np.float32), np.ones(3, np.float32))
    batch = transition_batch()
    seen, following = ({name: part["observation"]} for part in (batch.observation, batch.next_observation))
    metrics, _ = run_update(learner, replace(batch, observation=seen, next_observation=following))
    assert np.isfinite(list(metrics.values())).all()


@pytest.mark.parametrize("action", [DISCRETE, MULTI])
def test_choices_are_refused_with_advice(action: Any) -> None:
    with pytest.raises(UnsuitableActions, match=rf"SQL cannot choose {action.kind} actions.*algorithm\.name="):
        SQLConfig().build(asked(action))


@pytest.mark.parametrize(
    "bounds", [((-math.inf,), (1.0,)), ((0.0,), (math.inf,)), ((1.0,), (1.0,)), ((-3.4e38,), (3.4e38,))]
)
def test_bounds_that_are_infinite_or_equal_are_refused(bounds: tuple[tuple[float], tuple[float]]) -> None:
    with pytest.raises(
        UnsuitableActions, match=r"number 0 of this environment's action has the bounds.*TransformAction"
    ):
        built("sql", BoxAction(*bounds))


def test_a_restored_learner_continues_exactly() -> None:
    one, other = sql(lr=0.01, critic_lr=0.01), sql(lr=0.01, critic_lr=0.01)
    run_update(one, transition_batch())
    other.train_state.restore(one.train_state.state())
    assert run_update(one, transition_batch()).metrics == run_update(other, transition_batch()).metrics
    assert torch.equal(acting(one).flat, acting(other).flat)
