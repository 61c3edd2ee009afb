"""Categorical latents against plain float64."""

import numpy as np
import pytest
import torch
from tests.finite_differences import numerical_gradient

from rl4sys.dynamics import ModelSize, WorldModel
from rl4sys.dynamics.latents import UNIMIX, divergence, drawn, drawn_classes, probabilities
from rl4sys.experience import Array


def test_probabilities_contain_one_per_cent_of_uniform() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, 100.0, 0.0, -100.0]]).double()
    weights = np.exp(logits.numpy().reshape(2, 3) - logits.numpy().reshape(2, 3).max(1, keepdims=True))
    expected = 0.99 * weights / weights.sum(1, keepdims=True) + 0.01 / 3
    assert probabilities(logits, 3)[0].numpy() == pytest.approx(expected)
    assert probabilities(logits, 3).min().item() >= UNIMIX / 3


def test_draws_have_their_probabilities() -> None:
    chances = torch.tensor([0.1, 0.2, 0.3, 0.4])
    uniform = (torch.arange(1000) / 1000).unsqueeze(-1)
    classes = drawn_classes(chances.expand(1000, 1, 4), uniform).flatten()
    assert torch.bincount(classes, minlength=4).tolist() == pytest.approx([100, 200, 300, 400], abs=1)


def test_the_gradient_of_a_draw_goes_straight_to_its_probabilities() -> None:
    rng = np.random.default_rng(1)
    logits, weight = rng.normal(size=(2, 12)), rng.normal(size=(2, 12))
    x = torch.from_numpy(logits).requires_grad_()
    draw = drawn(probabilities(x, 4), torch.from_numpy(rng.random((2, 3))))
    assert sorted(set(draw.flatten().tolist())) == [0.0, 1.0]
    assert draw.sum().item() == 6.0
    (gradient,) = torch.autograd.grad((draw * torch.from_numpy(weight)).sum(), x)
    expected = numerical_gradient(lambda scores: (_mixed(scores, 4) * weight.reshape(2, 3, 4)).sum(), logits)
    assert gradient.numpy() == pytest.approx(expected, abs=1e-6)


def _mixed(logits: Array, classes: int) -> Array:
    parts = logits.reshape(len(logits), -1, classes)
    weights = np.exp(parts - parts.max(-1, keepdims=True))
    mixed: Array = 0.99 * weights / weights.sum(-1, keepdims=True) + 0.01 / classes
    return mixed


def _divergence(posterior: Array, prior: Array) -> Array:
    q, p = _mixed(posterior, 4), _mixed(prior, 4)
    summed: Array = (q * np.log(q / p)).sum((1, 2))
    return summed


FREE_NATS = 1.0
SIZE = ModelSize(deter=8, hidden=4, groups=3, classes=4, units=4, layers=1, depth=1, lr=1e-3)


@pytest.mark.parametrize("place", [0, 1], ids=["dynamics", "representation"])
def test_each_divergence_trains_one_side_where_the_sum_exceeds_the_free_nats(place: int) -> None:
    rng = np.random.default_rng(2)
    posterior, prior = rng.normal(size=(6, 12)), rng.normal(size=(6, 12))
    expected = np.maximum(_divergence(posterior, prior), FREE_NATS)
    assert 0 < (expected > FREE_NATS).sum() < 6
    scores = [torch.from_numpy(array).requires_grad_() for array in (posterior, prior)]
    model = WorldModel((), 1, SIZE, FREE_NATS, 1.0, 0.1, 1.0, None)
    loss = model.divergences(*(probabilities(part, 4) for part in scores))[place]
    assert loss.detach().numpy() == pytest.approx(expected, rel=1e-6)
    by_posterior, by_prior = torch.autograd.grad(loss.sum(), scores, allow_unused=True)
    trained, other, by_hand = (
        (by_prior, by_posterior, numerical_gradient(lambda x: _clipped(posterior, x), prior)),
        (by_posterior, by_prior, numerical_gradient(lambda x: _clipped(x, prior), posterior)),
    )[place]
    assert other is None
    assert trained.numpy() == pytest.approx(by_hand, abs=1e-6)


def _clipped(posterior: Array, prior: Array) -> float:
    return float(np.maximum(_divergence(posterior, prior), FREE_NATS).sum())


def test_the_divergence_is_summed_over_groups() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.dirichlet(np.ones(4), size=(5, 3)) for _ in range(2))
    expected = (first * np.log(first / second)).sum((1, 2))
    assert divergence(torch.from_numpy(first), torch.from_numpy(second)).numpy() == pytest.approx(expected)
