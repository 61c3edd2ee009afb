from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import ALGORITHMS, Progress, SACConfig, UnsuitableActions, run_update
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
from .problems import BOX, FEATURES, MULTI, problem
from .reference import Weights, gradient, named, network

ALPHA = 0.3


def sampled(weights: Weights, observation: Array, noise: Array) -> tuple[Array, Array]:
    """Squashed actions and their log-densities, with the correction in its textbook form."""
    mean, log_std = (network(weights, "actor", f"actor.{part}", observation) for part in ("mean", "log_std"))
    raw = mean + np.exp(log_std) * noise
    density = -0.5 * noise**2 - log_std - 0.5 * math.log(2 * math.pi) - np.log(1.0 - np.tanh(raw) ** 2)
    return np.tanh(raw), density.sum(axis=1)


def noises() -> tuple[Array, Array]:
    """The numbers of the first update: those of the next actions, then those of the actor's own."""
    generator = asked().torch_generator("samples")
    first, second = (torch.randn((ROWS, 2), generator=generator).double().numpy() for _ in range(2))
    return first, second


def weights_of(algorithm: object) -> Weights:
    return named(acting(algorithm).layout, flat_of(algorithm))  # type: ignore[attr-defined]


def targets(algorithm: object, flat_targets: Array, batch: Transitions) -> Array:
    """r + γ d (min Q_target(s′, a′) − α log π(a′ | s′)) (eq. 3 and 5)."""
    following = batch.next_observation["observation"]
    action, log_prob = sampled(weights_of(algorithm), following, noises()[0])
    layout = algorithm.critics.optimizer.parameters.layout  # type: ignore[attr-defined]
    value = q_values(layout, flat_targets, following, action).min(axis=0)
    return np.asarray(batch.reward + 0.9 * batch.discount * (value - ALPHA * log_prob))


def test_the_gradient_of_the_critics_is_that_of_the_paper() -> None:
    algorithm, batch = built("sac", temperature=ALPHA), transition_batch()
    target = targets(algorithm, with_other_targets(algorithm.critics), batch)
    require_gradient_of_critics(algorithm, batch, target)


@pytest.mark.parametrize("objective", ["min", "mean"])
def test_the_gradient_of_the_actor_is_that_of_the_paper(objective: str) -> None:
    algorithm = built("sac", temperature=ALPHA, actor_objective=objective, ensemble=3)
    batch, noise = transition_batch(), noises()[1]
    observation = batch.observation["observation"]
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    critics, critic_layout = flat_of(algorithm, "critics"), algorithm.critics.optimizer.parameters.layout

    def loss(weights: Weights) -> float:
        action, log_prob = sampled(weights, observation, noise)
        values = q_values(critic_layout, critics, observation, action)
        return float((ALPHA * log_prob - getattr(np, objective)(values, axis=0)).mean())

    metrics, _ = run_update(algorithm, batch)
    found = acting(algorithm).gradient.numpy()
    np.testing.assert_allclose(found, gradient(loss, layout, flat), rtol=2e-5, atol=2e-6)
    assert metrics["actor_loss"] == pytest.approx(loss(named(layout, flat)), abs=1e-5)


def test_targets_bootstrap_after_a_truncation_and_not_after_a_termination() -> None:
    batch = transition_batch()
    algorithm = built("sac", temperature=ALPHA)
    layout, flat = algorithm.critics.optimizer.parameters.layout, flat_of(algorithm, "critics")
    q = q_values(layout, flat, batch.observation["observation"], scaled(batch.action))
    target = targets(algorithm, flat, ending(batch, 1.0))
    at_end = run_update(algorithm, ending(batch, 0.0)).feedback["priority"]
    going_on = run_update(built("sac", temperature=ALPHA), ending(batch, 1.0)).feedback["priority"]
    np.testing.assert_allclose(at_end, np.abs(q - batch.reward).mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(going_on, np.abs(q - target).mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(("wanted", "direction"), [(5.0, 1.0), (-50.0, -1.0)])
def test_the_temperature_rises_below_the_target_entropy_and_falls_above_it(wanted: float, direction: float) -> None:
    algorithm = built("sac", target_entropy=wanted, temperature_lr=0.01)
    found = [run_update(algorithm, transition_batch()).metrics["temperature"] for _ in range(5)]
    assert found[0] == pytest.approx(1.0)
    # Adam's first steps are as long as its step size, whatever the gradient.
    assert found[1] == pytest.approx(math.exp(direction * 0.01), rel=1e-4)
    assert np.all(np.diff(found) * direction > 0)


def test_a_fixed_temperature_stays() -> None:
    algorithm = built("sac", temperature=0.2)
    found = [run_update(algorithm, transition_batch()).metrics["temperature"] for _ in range(3)]
    assert found == pytest.approx([0.2] * 3)


def test_a_polyak_update_moves_the_targets_by_its_share() -> None:
    algorithm = built("sac", polyak=0.25, critic_lr=0.01)
    before = with_other_targets(algorithm.critics)
    run_update(algorithm, transition_batch())
    expected = 0.75 * before + 0.25 * flat_of(algorithm, "critics")
    np.testing.assert_allclose(flat_of(algorithm, "critics.target"), expected, atol=1e-7)


def test_a_delayed_actor_is_unchanged_between_its_updates() -> None:
    algorithm = built("sac", policy_delay=3, lr=0.01, critic_lr=0.01)
    moved = []
    for _ in range(6):
        before = flat_of(algorithm)
        run_update(algorithm, transition_batch())
        moved.append(not np.array_equal(before, flat_of(algorithm)))
    assert moved == [False, False, True, False, False, True]


def test_a_subset_of_the_critics_makes_the_target() -> None:
    algorithm = built("sac", ensemble=5, target_subset=2, temperature=0.0)
    algorithm.critics.target = lambda observation, action: torch.arange(5.0)[:, None].expand(5, ROWS)
    minimize, lowest = algorithm.critics.minimize, []

    def noted(loss: Any, batch: Any, target: torch.Tensor) -> Any:
        lowest.append(target[0].item())
        return minimize(loss, batch, target)

    algorithm.critics.minimize = noted
    batch = replace(transition_batch(), reward=np.zeros(ROWS, np.float32), discount=np.ones(ROWS, np.float32))
    for _ in range(300):
        run_update(algorithm, batch)
    # The minimum of two different numbers below five is k in 4 − k of 10 draws; γ is 0.9.
    counts = np.bincount(np.rint(np.array(lowest) / 0.9).astype(int), minlength=5)
    np.testing.assert_allclose(counts / 300, [0.4, 0.3, 0.2, 0.1, 0], atol=0.1)


@pytest.mark.parametrize(("steps", "expected"), [(0, 1.0), (100, 1.0), (101, 0.0)])
def test_the_policy_acts_at_random_until_learning_starts(steps: int, expected: float) -> None:
    algorithm = built("sac", learning_starts=100)
    algorithm.train_state.advance(Progress(steps, None))
    views = layout_of(algorithm.policies.explore.program).views(algorithm.train_state.policy_weights())
    assert views["epsilon"].tolist() == [expected]


def test_the_published_policy_samples_the_same_actions_as_the_learner() -> None:
    algorithm = built("sac")
    algorithm.train_state.advance(Progress(1))
    observation = transition_batch().observation["observation"]
    policy = NumpyPolicy(algorithm.policies.explore, algorithm.train_state.policy_weights())
    uniform = np.random.default_rng(0).random((ROWS, 5)).astype(np.float32)
    decision = policy.act({"observation": observation}, uniform)
    normal = np.sqrt(-2 * np.log1p(-uniform[:, 0:4:2].astype(float))) * np.cos(2 * np.pi * uniform[:, 1:4:2])
    action, log_prob = sampled(weights_of(algorithm), observation, normal)
    np.testing.assert_allclose(scaled(decision.action), action, atol=1e-5)
    # The density that travels is in the units of the environment.
    np.testing.assert_allclose(decision.extras["log_prob"], log_prob - np.log([2.0, 0.375]).sum(), atol=1e-4)


def test_the_best_action_is_the_squashed_mean() -> None:
    algorithm = built("sac")
    observation = transition_batch().observation["observation"]
    policy = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    found = policy.act({"observation": observation}, np.zeros((ROWS, 0), np.float32)).action
    mean = network(weights_of(algorithm), "actor", "actor.mean", observation)
    np.testing.assert_allclose(scaled(found), np.tanh(mean), atol=1e-6)


def test_critics_of_an_ensemble_start_apart_and_a_seed_repeats_them() -> None:
    first, again = (built("sac", ensemble=3).critics.optimizer.parameters for _ in range(2))
    assert torch.equal(first.flat, again.flat)
    weight = first.views["critic.0.weight"]
    assert not torch.equal(weight[0], weight[1])
    assert not torch.equal(weight[1], weight[2])


def test_statistics_of_observations_reach_critics_and_targets() -> None:
    algorithm = SACConfig().build(problem(ASYMMETRIC, standardize=True))
    mean, scale = np.full(3, 2.0, np.float32), np.full(3, 0.5, np.float32)
    algorithm.train_state.standardize("observation", mean, scale)
    for parameters in (acting(algorithm), algorithm.critics.optimizer.parameters, algorithm.critics.target_parameters):
        assert parameters.views["observation.mean"].tolist() == mean.tolist()
        assert parameters.views["observation.scale"].tolist() == scale.tolist()
    run_update(algorithm, transition_batch())
    assert algorithm.critics.optimizer.parameters.views["observation.mean"].tolist() == mean.tolist()


@pytest.mark.parametrize("name", ["critic", "actor", "exploration", "epsilon", "action"])
@pytest.mark.parametrize("algorithm", ["sac", "td3", "ddpg"])
def test_an_observation_may_be_called_what_our_tensors_are_called(algorithm: str, name: str) -> None:
    known = problem(ASYMMETRIC, standardize=True)
    renamed = replace(known, observation=(replace(known.observation[0], name=name),))
    learner = ALGORITHMS.parse({"name": algorithm}).build(renamed)
    learner.train_state.standardize(name, np.ones(3, np.float32), np.ones(3, np.float32))
    batch = transition_batch()
    seen, following = ({name: part["observation"]} for part in (batch.observation, batch.next_observation))
    metrics, _ = run_update(learner, replace(batch, observation=seen, next_observation=following))
    assert np.isfinite(list(metrics.values())).all()


def test_several_choices_at_once_are_refused_with_advice() -> None:
    with pytest.raises(UnsuitableActions, match=r"SAC cannot choose multi_discrete actions.*algorithm\.name=ppo"):
        SACConfig().build(asked(MULTI))


@pytest.mark.parametrize(
    "bounds", [((-math.inf,), (1.0,)), ((0.0,), (math.inf,)), ((1.0,), (1.0,)), ((-3.4e38,), (3.4e38,))]
)
@pytest.mark.parametrize("name", ["sac", "td3", "ddpg"])
def test_bounds_that_are_infinite_or_equal_are_refused(name: str, bounds: tuple[tuple[float], tuple[float]]) -> None:
    with pytest.raises(
        UnsuitableActions, match=r"number 0 of this environment's action has the bounds.*TransformAction"
    ):
        built(name, BoxAction(*bounds))


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="target_subset is 3, but ensemble has only 2 critics"):
        SACConfig(target_subset=3)
    with pytest.raises(ValueError, match=r"temperature is -1\.0; expected auto"):
        SACConfig(temperature=-1.0)


def test_windows_of_several_steps_discount_what_follows_them_by_their_length() -> None:
    one = transition_batch()
    reward = np.stack([one.reward, np.zeros(ROWS, np.float32)], axis=1)
    two = replace(one, reward=reward, span=np.full(ROWS, 2))
    single, double = (
        run_update(built("sac", temperature=ALPHA, gamma=g), b).metrics for g, b in ((0.81, one), (0.9, two))
    )
    assert double["critic_loss"] == pytest.approx(single["critic_loss"], rel=1e-5)


def test_critics_read_the_observation_and_the_action_once() -> None:
    critics = SACConfig().build(problem(BOX)).critics
    first = critics.optimizer.parameters.views["critic.0.weight"]
    assert first.shape[-2] == FEATURES + BOX.size
