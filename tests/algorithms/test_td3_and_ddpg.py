from __future__ import annotations

import numpy as np
import pytest
import torch

from rl4sys.algorithms import Progress, UnsuitableActions, run_update
from rl4sys.experience import Array, StreamKey, Transitions
from rl4sys.policy import ActionSpec, KeyedNoise, NumpyPolicy, layout_of

from .actor_critic import (
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
from .problems import DISCRETE, MULTI
from .reference import Weights, gradient, named, network

NETWORKS = ("actor", "actor.target", "critics", "critics.target")
BOTH = pytest.mark.parametrize("name", ["td3", "ddpg"])


def best(weights: Weights, observation: Array) -> Array:
    """What an actor thinks best, in [−1, 1]."""
    return np.tanh(network(weights, "actor", "actor.action", observation))


def with_another_target_actor(algorithm: object) -> Weights:
    """Moves the target of the actor away from it; returns its weights."""
    return named(acting(algorithm).layout, with_other_targets(algorithm.actor))  # type: ignore[attr-defined]


def smoothing(std: float, clip: float) -> Array:
    """The clipped noise of TD3's first update."""
    noise = torch.randn((ROWS, 2), generator=asked().torch_generator("samples")).double().numpy()
    return np.clip(std * noise, -clip, clip)


def targets(algorithm: object, name: str, batch: Transitions) -> Array:
    """r + γ d min Q_target(s′, a′), where a′ is the target's action, smoothed by TD3."""
    flat_targets = with_other_targets(algorithm.critics)  # type: ignore[attr-defined]
    following = batch.next_observation["observation"]
    action = best(with_another_target_actor(algorithm), following)
    if name == "td3":
        action = np.clip(action + smoothing(0.6, 0.5), -1.0, 1.0)
    layout = algorithm.critics.optimizer.parameters.layout  # type: ignore[attr-defined]
    return np.asarray(
        batch.reward + 0.9 * batch.discount * q_values(layout, flat_targets, following, action).min(axis=0)
    )


def made(name: str, **config: object) -> object:
    return built(name, **({"target_noise": 0.6} if name == "td3" else {}), **config)


@BOTH
def test_the_gradient_of_the_critics_is_that_of_the_papers(name: str) -> None:
    algorithm, batch = made(name), transition_batch()
    require_gradient_of_critics(algorithm, batch, targets(algorithm, name, batch))


@BOTH
def test_the_actor_step_maximises_the_first_critic(name: str) -> None:
    algorithm, batch = made(name, **({"policy_delay": 1} if name == "td3" else {})), transition_batch()
    observation = batch.observation["observation"]
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    critics, critic_layout = flat_of(algorithm, "critics"), algorithm.critics.optimizer.parameters.layout

    def loss(weights: Weights) -> float:
        return -float(q_values(critic_layout, critics, observation, best(weights, observation))[0].mean())

    metrics, _ = run_update(algorithm, batch)
    np.testing.assert_allclose(acting(algorithm).gradient.numpy(), gradient(loss, layout, flat), rtol=2e-5, atol=2e-6)
    assert metrics["actor_loss"] == pytest.approx(loss(named(layout, flat)), abs=1e-5)


@BOTH
def test_targets_do_not_bootstrap_after_a_termination(name: str) -> None:
    algorithm, batch = made(name), transition_batch()
    layout, flat = algorithm.critics.optimizer.parameters.layout, flat_of(algorithm, "critics")
    q = q_values(layout, flat, batch.observation["observation"], scaled(batch.action))
    found = run_update(algorithm, ending(batch, 0.0)).feedback["priority"]
    np.testing.assert_allclose(found, np.abs(q - batch.reward).mean(axis=0), atol=1e-5)


def test_actor_and_targets_of_td3_are_unchanged_between_their_updates() -> None:
    algorithm = built("td3", policy_delay=3, lr=0.01, critic_lr=0.01, polyak=0.5)
    moved = []
    for _ in range(6):
        before = {name: flat_of(algorithm, name) for name in NETWORKS}
        run_update(algorithm, transition_batch())
        changes = {name: not np.array_equal(before[name], flat_of(algorithm, name)) for name in NETWORKS}
        assert changes.pop("critics")
        assert len(set(changes.values())) == 1
        moved.append(changes["actor"])
    assert moved == [False, False, True, False, False, True]


@BOTH
def test_a_polyak_update_moves_all_targets_by_its_share(name: str) -> None:
    algorithm = built(name, polyak=0.25, lr=0.01, critic_lr=0.01, **({"policy_delay": 1} if name == "td3" else {}))
    before = {name: flat_of(algorithm, f"{name}.target") for name in ("actor", "critics")}
    run_update(algorithm, transition_batch())
    for name, target in before.items():
        expected = 0.75 * target + 0.25 * flat_of(algorithm, name)
        np.testing.assert_allclose(flat_of(algorithm, f"{name}.target"), expected, atol=1e-7)


def exploring(algorithm: object, steps: int) -> tuple[Array, Array]:
    """Scaled actions of many steps of one stream that is always shown the same, and what it would do without noise."""
    policies, weights = algorithm.policies, algorithm.train_state.policy_weights()  # type: ignore[attr-defined]
    shown = {"observation": np.zeros((1, 3), np.float32)}
    policy = NumpyPolicy(policies.explore, weights)
    noise, carry, found = KeyedNoise(1, [StreamKey("test")], policy.noise_size), policy.initial_carry(1), []
    for step in range(steps):
        decision = policy.act(shown, noise.at(step), carry)
        carry = {name: memory.copy() for name, memory in decision.carry.items()}
        found.append(scaled(decision.action)[0])
    mean = NumpyPolicy(policies.exploit, weights).act(shown, np.zeros((1, 0), np.float32)).action
    return np.array(found), scaled(mean)[0]


@pytest.mark.parametrize("exploration", ["gaussian", "ornstein_uhlenbeck"])
@BOTH
def test_noise_has_its_deviation_and_its_memory(name: str, exploration: str) -> None:
    algorithm = built(name, exploration=exploration, exploration_std=0.05, exploration_theta=0.2)
    algorithm.train_state.advance(Progress(1))
    actions, mean = exploring(algorithm, 4_000)
    shift = actions - mean
    # An autoregression with factor 0.8 has deviation 0.05 / √(1 − 0.8²) and correlation 0.8.
    deviation, correlation = (0.05, 0.0) if exploration == "gaussian" else (0.05 / 0.6, 0.8)
    assert shift.std(axis=0) == pytest.approx([deviation] * 2, rel=0.15)
    assert np.corrcoef(shift[1:, 0], shift[:-1, 0])[0, 1] == pytest.approx(correlation, abs=0.05)


@BOTH
def test_the_policy_acts_at_random_until_learning_starts(name: str) -> None:
    algorithm = built(name, learning_starts=100)
    algorithm.train_state.advance(Progress(100))
    actions, _ = exploring(algorithm, 2_000)
    assert np.abs(actions).max() <= 1.0
    assert actions.mean(axis=0) == pytest.approx([0.0, 0.0], abs=0.05)
    assert actions.std(axis=0) == pytest.approx([np.sqrt(1.0 / 3.0)] * 2, rel=0.05)
    algorithm.train_state.advance(Progress(101))
    views = layout_of(algorithm.policies.explore.program).views(algorithm.train_state.policy_weights())
    assert views["exploration.epsilon"].tolist() == [0.0]


@BOTH
def test_noise_is_never_trained(name: str) -> None:
    algorithm = built(name, lr=0.1, exploration_std=0.3)
    for _ in range(4):
        run_update(algorithm, transition_batch())
    views = layout_of(algorithm.policies.explore.program).views(algorithm.train_state.policy_weights())
    assert views["exploration.std"].tolist() == pytest.approx([0.3, 0.3])


@BOTH
@pytest.mark.parametrize(("action", "others"), [(DISCRETE, "sac, dqn or ppo"), (MULTI, "ppo")])
def test_choices_are_refused_with_advice(name: str, action: ActionSpec, others: str) -> None:
    with pytest.raises(UnsuitableActions, match=rf"{name.upper()} cannot choose {action.kind} .*name={others},"):
        built(name, action)
