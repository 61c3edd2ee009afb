from __future__ import annotations

import numpy as np
import pytest

from rl4sys.algorithms import DiscreteSAC, Progress, run_update
from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.policy import MASK, KeyedNoise, NumpyPolicy

from .actor_critic import ROWS, built, q_values, transition_batch, with_other_targets
from .networks_of import acting, flat_of
from .problems import DISCRETE
from .reference import Weights, gradient, log_softmax, named, network

ALPHA = 0.3
MASKED = pytest.mark.parametrize("masked", [False, True])


def log_probs(weights: Weights, observation: Arrays) -> Array:
    logits = network(weights, "actor", "actor.action", observation["observation"])
    return log_softmax(np.where(observation.get(MASK, True), logits, -1e30))


def expectation(log_prob: Array, values: Array, observation: Arrays) -> Array:
    return (np.exp(log_prob) * np.where(observation.get(MASK, True), values, 0.0)).sum(axis=1)


def weights_of(algorithm: DiscreteSAC) -> Weights:
    return named(acting(algorithm).layout, flat_of(algorithm))


@MASKED
def test_the_gradient_of_the_critics_is_that_of_the_paper(masked: bool) -> None:
    algorithm, batch = (
        built("sac", DISCRETE, masked=masked, temperature=ALPHA),
        transition_batch(DISCRETE, masked=masked),
    )
    flat_targets = with_other_targets(algorithm.critics)
    layout, flat = algorithm.critics.optimizer.parameters.layout, flat_of(algorithm, "critics")
    following = log_probs(weights_of(algorithm), batch.next_observation)
    values = q_values(layout, flat_targets, batch.next_observation["observation"]).min(axis=0)
    soft = expectation(following, values - ALPHA * following, batch.next_observation)
    target = batch.reward + 0.9 * batch.discount * soft

    def errors(weights: Weights) -> Array:
        joined = np.concatenate([t.ravel() for t in weights.values()])
        return q_values(layout, joined, batch.observation["observation"])[:, np.arange(ROWS), batch.action] - target

    _, feedback = run_update(algorithm, batch)
    expected = gradient(lambda w: float((0.5 * errors(w) ** 2 * batch.weight).mean(axis=1).sum()), layout, flat)
    np.testing.assert_allclose(algorithm.critics.optimizer.parameters.gradient.numpy(), expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(feedback["priority"], np.abs(errors(named(layout, flat))).mean(axis=0), atol=1e-5)


@MASKED
def test_the_gradient_of_the_actor_is_that_of_the_paper(masked: bool) -> None:
    algorithm, batch = (
        built("sac", DISCRETE, masked=masked, temperature=ALPHA),
        transition_batch(DISCRETE, masked=masked),
    )
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    critics, critic_layout = flat_of(algorithm, "critics"), algorithm.critics.optimizer.parameters.layout
    values = q_values(critic_layout, critics, batch.observation["observation"]).min(axis=0)

    def loss(weights: Weights) -> float:
        found = log_probs(weights, batch.observation)
        return float(expectation(found, ALPHA * found - values, batch.observation).mean())

    metrics, _ = run_update(algorithm, batch)
    np.testing.assert_allclose(acting(algorithm).gradient.numpy(), gradient(loss, layout, flat), rtol=2e-5, atol=2e-6)
    assert metrics["actor_loss"] == pytest.approx(loss(named(layout, flat)), abs=1e-5)


def test_a_terminal_state_without_allowed_actions_does_no_harm() -> None:
    batch = transition_batch(DISCRETE, masked=True)
    batch.next_observation[MASK][2::3] = False
    algorithm = built("sac", DISCRETE, masked=True, temperature=5.0)
    metrics, feedback = run_update(algorithm, batch)
    assert np.isfinite(list(metrics.values())).all()
    assert np.isfinite(feedback["priority"]).all()
    assert np.isfinite(acting(algorithm).flat.numpy()).all()


@pytest.mark.parametrize(
    ("wanted", "rises"),
    [
        ({"entropy_fraction": 0.999}, True),
        ({"entropy_fraction": 0.01}, False),
        ({"target_entropy": 1.09, "entropy_fraction": 0.01}, True),
        ({"target_entropy": 0.2, "entropy_fraction": 0.999}, False),
    ],
)
def test_the_temperature_reaches_the_target_entropy(wanted: dict[str, float], rises: bool) -> None:
    algorithm = built("sac", DISCRETE, temperature_lr=0.01, **wanted)
    found = [run_update(algorithm, transition_batch(DISCRETE)).metrics["temperature"] for _ in range(4)]
    assert np.all(np.diff(found) > 0) if rises else np.all(np.diff(found) < 0)


def test_until_learning_starts_all_allowed_actions_are_equally_likely() -> None:
    algorithm = built("sac", DISCRETE, masked=True, learning_starts=100)
    algorithm.train_state.advance(Progress(100))
    policy = NumpyPolicy(algorithm.policies.explore, algorithm.train_state.policy_weights())
    rows = 3_000
    observation = {"observation": np.ones((rows, 3), np.float32), MASK: np.tile([True, False, True], (rows, 1))}
    streams = [StreamKey("test", lane=lane) for lane in range(rows)]
    decision = policy.act(observation, KeyedNoise(0, streams, 1).at(0))
    assert np.bincount(decision.action, minlength=3) / rows == pytest.approx([0.5, 0.0, 0.5], abs=0.03)
    algorithm.train_state.advance(Progress(101))
    np.testing.assert_array_equal(algorithm.train_state.policy_weights(), flat_of(algorithm))
