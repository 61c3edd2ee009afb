"""Categorical latents against plain float64."""

import numpy as np
import pytest
import torch

from rl4sys.dynamics.latents import UNIMIX, divergence, drawn, drawn_classes, probabilities


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
    chances = torch.full((2, 3, 4), 0.25, requires_grad=True)
    weight = torch.randn(2, 12)
    draw = drawn(chances, torch.rand(2, 3))
    assert draw.sum().item() == 6.0
    (gradient,) = torch.autograd.grad((draw * weight).sum(), chances)
    assert torch.equal(gradient, weight.view(2, 3, 4))


def test_the_divergence_is_summed_over_groups() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.dirichlet(np.ones(4), size=(5, 3)) for _ in range(2))
    expected = (first * np.log(first / second)).sum((1, 2))
    assert divergence(torch.from_numpy(first), torch.from_numpy(second)).numpy() == pytest.approx(expected)
