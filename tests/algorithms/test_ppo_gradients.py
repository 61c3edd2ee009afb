"""Loss and gradients of PPO against independent float64 numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import AdvantageBatch, PPOConfig, run_update
from rl4sys.networks import ActionLikelihood, categorical, gaussian, multi_categorical
from rl4sys.policy import ActionSpec

from .networks_of import acting, flat_of
from .ppo_reference import Expected
from .problems import BOX, DISCRETE, MULTI, fixed_batch, ppo, problem
from .reference import gradient, named

WHOLE: dict[str, Any] = {"epochs": 1, "minibatch_size": 1000, "max_grad_norm": 1e9, "lr": 1e-12}
CASES: dict[str, tuple[ActionSpec, bool, dict[str, Any], tuple[int, ...]]] = {
    "discrete": (DISCRETE, False, {}, ()),
    "masked": (DISCRETE, True, {}, ()),
    "multi_discrete": (MULTI, False, {}, ()),
    "masked multi_discrete": (MULTI, True, {}, ()),
    "box": (BOX, False, {}, ()),
    "entropy": (MULTI, True, {"entropy_coef": 0.3}, ()),
    "entropy of a box": (BOX, False, {"entropy_coef": 0.3}, ()),
    "raw advantages": (DISCRETE, False, {"normalize_advantage": False, "gamma": 0.8}, ()),
    "aged": (DISCRETE, False, {"max_importance": 1.2}, (0, 2, 1)),
    "aged box": (BOX, False, {"max_importance": 1.2, "entropy_coef": 0.01}, (0, 2, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_of_a_batch_is_that_of_the_papers(case: str) -> None:
    action, masked, settings, ages = CASES[case]
    config = PPOConfig(**WHOLE, **settings)
    algorithm, batch = config.build(problem(action, masked=masked)), fixed_batch(problem(action, masked=masked), ages)
    layout, flat = acting(algorithm).layout, flat_of(algorithm)
    expected = Expected.of(algorithm, action, config, batch)
    metrics, _ = run_update(algorithm, batch)
    found = acting(algorithm).gradient.numpy()
    np.testing.assert_allclose(found, gradient(expected.loss, layout, flat), rtol=2e-5, atol=1e-6)
    loss = metrics["policy_loss"] + config.value_coef * metrics["value_loss"]
    assert loss - config.entropy_coef * metrics["entropy"] == pytest.approx(
        expected.loss(named(layout, flat)), abs=1e-6
    )


def test_a_clipped_value_loss_has_the_gradient_of_the_paper() -> None:
    config = PPOConfig(**WHOLE | {"lr": 0.05, "epochs": 2, "anneal_lr": False}, clip_value=0.02)
    algorithm, batch = config.build(problem()), fixed_batch(problem())
    expected = Expected.of(algorithm, DISCRETE, config, batch)
    # The second epoch starts where the first one left the weights; the critic has moved further than it may.
    one_epoch = PPOConfig(**WHOLE | {"lr": 0.05, "anneal_lr": False}, clip_value=0.02).build(problem())
    run_update(one_epoch, batch)
    run_update(algorithm, batch)
    wanted = gradient(expected.loss, acting(algorithm).layout, flat_of(one_epoch))
    np.testing.assert_allclose(acting(algorithm).gradient.numpy(), wanted, rtol=2e-5, atol=1e-6)


def one_row(**columns: float) -> AdvantageBatch:
    """A batch of one step in float64."""
    usual = {"log_prob": 0.0, "advantage": 0.0, "returns": 0.0, "value": 0.0, "weight": 1.0} | columns
    tensors = {name: torch.tensor([value], dtype=torch.float64) for name, value in usual.items()}
    return AdvantageBatch({}, torch.zeros(1), age=torch.zeros(1), **tensors)


def slope(ratio: float, advantage: float, weight: float = 1.0) -> float:
    """The derivative of the surrogate by the logarithm of the ratio."""
    log_ratio = torch.tensor([np.log(ratio)], dtype=torch.float64, requires_grad=True)
    algorithm = ppo(clip_ratio=0.2)
    algorithm.likelihood = lambda batch: ActionLikelihood(log_ratio, torch.zeros(1))  # type: ignore[method-assign]
    algorithm.policy_loss(one_row(advantage=advantage, weight=weight))[0].backward()
    assert log_ratio.grad is not None
    return log_ratio.grad.item()


@pytest.mark.parametrize(("ratio", "advantage"), [(1.3, 2.0), (0.7, -2.0)])
def test_a_clipped_ratio_has_no_gradient(ratio: float, advantage: float) -> None:
    assert slope(ratio, advantage) == 0.0


@pytest.mark.parametrize(("ratio", "advantage"), [(0.7, 2.0), (1.3, -2.0), (1.1, 2.0), (0.9, -2.0), (1.0, 2.0)])
def test_an_unclipped_ratio_has_a_gradient_along_the_advantage(ratio: float, advantage: float) -> None:
    assert slope(ratio, advantage) == pytest.approx(-ratio * advantage, abs=1e-12)
    assert slope(ratio, advantage, weight=0.5) == pytest.approx(-0.5 * ratio * advantage, abs=1e-12)


@pytest.mark.parametrize(
    ("value", "outcome", "expected"),
    [(1.0, 3.0, -2.0), (2.0, 3.0, 0.0), (2.0, 0.0, 2.0), (0.0, -3.0, 0.0), (0.0, 3.0, -3.0)],
)
def test_a_clipped_value_has_no_gradient(value: float, outcome: float, expected: float) -> None:
    # The earlier prediction is 1 and the clip 0.5.
    moved = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    algorithm = ppo(clip_value=0.5)
    algorithm.critic = lambda observation: moved  # type: ignore[assignment]
    algorithm.value_loss(one_row(returns=outcome, value=1.0))[1].backward()
    assert moved.grad is not None
    assert moved.grad.item() == pytest.approx(expected, abs=1e-12)


def test_entropy_of_choices_has_its_known_gradient() -> None:
    logits = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    entropy = categorical(logits, torch.zeros(5, dtype=torch.int64), None).entropy
    entropy.sum().backward()
    logs = logits.detach().log_softmax(1)
    # dH/dz = −p (log p + H)
    expected = -logs.exp() * (logs + entropy.detach()[:, None])
    torch.testing.assert_close(logits.grad, expected, atol=1e-12, rtol=0)


def test_masked_actions_get_no_gradient() -> None:
    logits = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    mask = torch.tensor([[True, False, True, True, True], [True, True, True, False, True]])
    log_prob, entropy = multi_categorical(logits, torch.tensor([[0, 1], [2, 1]]), mask, (3, 2))
    (log_prob.sum() + entropy.sum()).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[~mask].tolist() == [0.0, 0.0]


def test_the_gaussian_equals_that_of_torch() -> None:
    mean, action = torch.randn(2, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    log_std = torch.tensor([-1.0, 0.0, 0.5], dtype=torch.float64)
    found, known = gaussian(mean, log_std, action), torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(found.log_prob, known.log_prob(action).sum(-1), atol=1e-12, rtol=0)
    torch.testing.assert_close(found.entropy, known.entropy().sum(-1), atol=1e-12, rtol=0)


def test_gradients_are_clipped_to_the_maximum_norm() -> None:
    algorithm = ppo(epochs=1, minibatch_size=1000, max_grad_norm=0.1)
    metrics, _ = run_update(algorithm, fixed_batch(problem()))
    assert metrics["gradient_norm"] > 0.1
    assert torch.linalg.vector_norm(acting(algorithm).gradient).item() == pytest.approx(0.1, rel=1e-4)
