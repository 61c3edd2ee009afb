from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rl4sys.algorithms import DQN, DQNConfig, Progress, UnsuitableActions, run_update
from rl4sys.experience import Array, Transitions
from rl4sys.policy import MASK, ActionSpec, NumpyPolicy, layout_of

from .actor_critic import with_other_targets
from .networks_of import acting, flat_of
from .problems import BOX, MULTI, dqn, problem, transitions
from .reference import Weights, gradient, named, network, values


def epsilon(algorithm: DQN) -> float:
    """The share of random actions as a client reads it from the weights."""
    layout = layout_of(algorithm.policies.explore.program)
    return float(layout.views(algorithm.train_state.policy_weights())["epsilon"][0])


def with_other_target(algorithm: DQN) -> DQN:
    """The same network with a target that differs from it."""
    with_other_targets(algorithm.network)
    return algorithm


def targets(algorithm: DQN, batch: Transitions, *, double: bool, gamma: float) -> Array:
    """r + γ d Q_target(s′, a*), where a* is the best allowed action, by the network itself or by the target."""
    layout = acting(algorithm).layout
    online, target = (
        network(named(layout, flat_of(algorithm, name)), "actor", "actor.action", batch.next_observation["observation"])
        for name in ("q", "q.target")
    )
    chosen_by = online if double else target
    if MASK in batch.next_observation:
        chosen_by = np.where(batch.next_observation[MASK], chosen_by, -np.inf)
    chosen = target[np.arange(len(batch)), chosen_by.argmax(axis=1)]
    return np.asarray(batch.reward + gamma * batch.discount * chosen)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_the_gradient_of_a_batch_is_that_of_the_papers(double: bool, masked: bool) -> None:
    algorithm = with_other_target(dqn(masked=masked, double=double, gamma=0.9, max_grad_norm=1e9, lr=1e-12))
    batch = transitions(problem(masked=masked))
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    target = targets(algorithm, batch, double=double, gamma=0.9)

    def errors(weights: Weights) -> Array:
        q = network(weights, "actor", "actor.action", batch.observation["observation"])
        return np.asarray(q[np.arange(len(batch)), batch.action] - target)

    def loss(weights: Weights) -> float:
        size = np.abs(errors(weights))
        return float((batch.weight * np.where(size < 1.0, 0.5 * size**2, size - 0.5)).mean())

    metrics, feedback = run_update(algorithm, batch)
    found = acting(algorithm).gradient.numpy()
    np.testing.assert_allclose(found, gradient(loss, layout, flat), rtol=2e-5, atol=1e-6)
    assert metrics["loss"] == pytest.approx(loss(named(layout, flat)), abs=1e-6)
    np.testing.assert_allclose(feedback["priority"], np.abs(errors(named(layout, flat))), atol=1e-5)


def test_targets_bootstrap_after_a_truncation_and_not_after_a_termination() -> None:
    batch = transitions(problem())
    ended, open_ = (replace(batch, discount=np.full(12, d, np.float32)) for d in (0.0, 1.0))
    q = values(dqn(), batch.observation["observation"].tolist())[np.arange(12), batch.action]
    following = values(dqn(), batch.next_observation["observation"].tolist()).max(axis=1)
    _, at_end = run_update(dqn(gamma=0.9), ended)
    _, going_on = run_update(dqn(gamma=0.9), open_)
    np.testing.assert_allclose(at_end["priority"], np.abs(q - batch.reward), atol=1e-5)
    np.testing.assert_allclose(going_on["priority"], np.abs(q - batch.reward - 0.9 * following), atol=1e-5)


def test_a_terminal_state_without_allowed_actions_does_no_harm() -> None:
    for double in (False, True):
        batch = transitions(problem(masked=True))
        batch.next_observation[MASK][batch.discount == 0.0] = False
        _, feedback = run_update(dqn(masked=True, double=double), batch)
        assert (feedback["priority"] < 100.0).all()


def test_the_target_changes_only_when_enough_updates_were_made() -> None:
    algorithm = dqn(target_update_interval=3, lr=0.01)
    batch, copies = transitions(problem()), []
    for _ in range(6):
        before = flat_of(algorithm, "q.target")
        run_update(algorithm, batch)
        after = flat_of(algorithm, "q.target")
        copies.append(not np.array_equal(after, before))
        assert not copies[-1] or np.array_equal(after, flat_of(algorithm, "q"))
    assert copies == [False, False, True, False, False, True]


def test_a_target_network_can_move_by_a_share() -> None:
    algorithm = dqn(target_update_interval=1, polyak=0.25, lr=0.01)
    before = flat_of(algorithm, "q.target")
    run_update(algorithm, transitions(problem()))
    np.testing.assert_allclose(flat_of(algorithm, "q.target"), 0.75 * before + 0.25 * flat_of(algorithm), atol=1e-7)


@pytest.mark.parametrize(("steps", "expected"), [(0, 0.8), (100, 0.45), (200, 0.1), (900, 0.1)])
def test_exploration_falls_with_the_steps_of_the_run(steps: int, expected: float) -> None:
    algorithm = dqn(epsilon_start=0.8, epsilon_end=0.1, exploration_fraction=0.2)
    algorithm.train_state.advance(Progress(steps, 1000))
    assert epsilon(algorithm) == pytest.approx(expected)


def test_exploration_of_a_run_without_end_falls_over_given_steps() -> None:
    algorithm = dqn(exploration_steps=400, epsilon_end=0.0)
    algorithm.train_state.advance(Progress(100, None))
    assert epsilon(algorithm) == 0.75


def test_exploration_is_never_trained() -> None:
    algorithm = dqn(lr=0.1)
    run_update(algorithm, transitions(problem()))
    assert epsilon(algorithm) == 1.0


def test_the_policy_of_a_dueling_network_chooses_as_the_whole_network_does() -> None:
    algorithm = dqn(dueling=True, lr=0.05)
    for _ in range(20):
        run_update(algorithm, transitions(problem()))
    observation = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    policy = NumpyPolicy(algorithm.policies.exploit, algorithm.train_state.policy_weights())
    chosen = policy.act({"observation": observation}, np.zeros((50, 0))).action
    assert chosen.tolist() == values(algorithm, observation.tolist()).argmax(axis=1).tolist()
    assert len(set(chosen.tolist())) > 1
    assert algorithm.train_state.policy_weights().size == acting(algorithm).layout.size - (4 + 1)


def test_statistics_of_observations_reach_the_target_too() -> None:
    algorithm = dqn(standardize=True)
    mean, scale = np.full(3, 2.0, np.float32), np.full(3, 0.5, np.float32)
    algorithm.train_state.standardize("observation", mean, scale)
    for part in ("q", "q.target"):
        found = named(acting(algorithm).layout, flat_of(algorithm, part))
        assert found["observation.mean"].tolist() == mean.tolist()
        assert found["observation.scale"].tolist() == scale.tolist()


@pytest.mark.parametrize(
    ("action", "others"), [(BOX, "sac, td3 or ppo"), (MULTI, "ppo")], ids=["box", "multi_discrete"]
)
def test_actions_that_dqn_cannot_choose_are_refused_with_advice(action: ActionSpec, others: str) -> None:
    with pytest.raises(UnsuitableActions, match=rf"wants {action.kind} actions.*algorithm\.name={others}"):
        DQNConfig().build(problem(action))


def test_initial_weights_are_within_one_over_the_root_of_the_fan_in() -> None:
    found = named(acting(dqn()).layout, flat_of(dqn()))
    for layer, inputs in (("actor.0", 3), ("actor.action", 4)):
        both = np.concatenate([found[f"{layer}.weight"].ravel(), found[f"{layer}.bias"]])
        assert 0.5 / np.sqrt(inputs) < np.abs(both).max() <= 1.0 / np.sqrt(inputs)


def test_an_observation_may_be_called_value() -> None:
    asked = problem(standardize=True)
    named_value = replace(asked, observation=(replace(asked.observation[0], name="value"),))
    algorithm = DQNConfig().build(named_value)
    assert algorithm.train_state.policy_weights().size == layout_of(algorithm.policies.explore.program).size
