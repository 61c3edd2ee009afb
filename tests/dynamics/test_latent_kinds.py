"""Gaussian latents against plain float64, and in a filter."""

import numpy as np
import pytest
import torch
from tests.dynamics.models import acting_program, random_views, sequences
from tests.finite_differences import numerical_gradient

from rl4sys.dynamics import RSSM
from rl4sys.dynamics.latent_kinds import MIN_STD, GaussianLatents
from rl4sys.experience import Array
from rl4sys.policy import BoxAction, Head, NumpyPolicy, PolicySpec

GAUSSIAN = RSSM(deter=16, hidden=6, groups=3, classes=1, blocks=2, embedding=5, actions=2, kind="gaussian")
LATENTS = GaussianLatents(3)


def _mean_and_std(outputs: Array) -> tuple[Array, Array]:
    return outputs[:, :3], np.log1p(np.exp(outputs[:, 3:])) + 0.1


def _divergence(posterior: Array, prior: Array) -> Array:
    (mean, std), (prior_mean, prior_std) = _mean_and_std(posterior), _mean_and_std(prior)
    each = np.log(prior_std / std) + (std**2 + (mean - prior_mean) ** 2) / (2.0 * prior_std**2) - 0.5
    summed: Array = each.sum(1)
    return summed


def test_the_divergence_of_gaussians_and_its_gradients_equal_the_formula() -> None:
    rng = np.random.default_rng(0)
    posterior, prior = rng.normal(size=(4, 6)), rng.normal(size=(4, 6))
    tensors = [torch.from_numpy(array).requires_grad_() for array in (posterior, prior)]
    found = LATENTS.divergence(*map(LATENTS.distribution, tensors))
    assert found.detach().numpy() == pytest.approx(_divergence(posterior, prior), rel=1e-6)
    by_posterior, by_prior = torch.autograd.grad(found.sum(), tensors)
    by_hand = numerical_gradient(lambda x: _divergence(x, prior).sum(), posterior)
    assert by_posterior.numpy() == pytest.approx(by_hand, abs=1e-6)
    by_hand = numerical_gradient(lambda x: _divergence(posterior, x).sum(), prior)
    assert by_prior.numpy() == pytest.approx(by_hand, abs=1e-6)


def test_the_gradient_of_a_draw_reaches_mean_and_deviation() -> None:
    rng = np.random.default_rng(1)
    outputs, normal = rng.normal(size=(2, 6)), rng.normal(size=(2, 3))
    uniform = torch.special.ndtr(torch.from_numpy(normal))

    def reference(x: Array) -> Array:
        mean, std = _mean_and_std(x)
        drawn: Array = mean + std * normal
        return drawn

    x = torch.from_numpy(outputs).requires_grad_()
    found = LATENTS.drawn(LATENTS.distribution(x), uniform)
    assert found.detach().numpy() == pytest.approx(reference(outputs), rel=1e-6)
    (gradient,) = torch.autograd.grad(found.square().sum(), x)
    assert gradient.numpy() == pytest.approx(numerical_gradient(lambda a: (reference(a) ** 2).sum(), outputs), abs=1e-6)


def test_a_gaussian_latent_never_becomes_certain() -> None:
    distribution = LATENTS.distribution(torch.full((1, 6), -1e3))
    assert distribution[..., 1].min().item() == pytest.approx(MIN_STD)


def test_draws_stay_finite_at_the_ends_of_the_uniform_numbers() -> None:
    distribution = LATENTS.distribution(torch.zeros(2, 6))
    assert torch.isfinite(LATENTS.drawn(distribution, torch.tensor([[0.0] * 3, [1.0] * 3]))).all()


def test_nothing_before_the_start_of_an_episode_reaches_gaussian_latents_after_it() -> None:
    views, (embedding, action, is_first, uniform) = random_views(GAUSSIAN), sequences(GAUSSIAN, length=6)
    is_first[:] = False
    is_first[:, 3] = True
    before, _ = GAUSSIAN.observe(views, embedding, action, is_first, uniform)
    embedding[:, :3] = torch.rand(embedding[:, :3].shape)
    after, _ = GAUSSIAN.observe(views, embedding, action, is_first, uniform)
    assert torch.equal(before.feature()[:, 3:], after.feature()[:, 3:])
    assert not torch.equal(before.feature()[:, :3], after.feature()[:, :3])


def test_a_policy_filters_gaussian_latents_as_training_does() -> None:
    """Twenty steps of the numpy runtime, and one pass over what they saw, with the same normal numbers."""
    steps, rng = 20, np.random.default_rng(2)
    program = acting_program(GAUSSIAN)
    latents = {memory.name: memory.next for memory in program.carry}["rssm.stoch"]
    spec = PolicySpec(BoxAction((-9.0,) * 3, (9.0,) * 3), program, Head("deterministic", (latents,)))
    views = random_views(GAUSSIAN)
    weights = np.concatenate([views[tensor.name].detach().float().numpy().ravel() for tensor in program.tensors])
    policy = NumpyPolicy(spec, weights)
    seen = rng.normal(size=(2, steps, 5)).astype(np.float32)
    noise = rng.random((2, steps, policy.noise_size)).astype(np.float32)
    carry, found = policy.initial_carry(2), []
    for step in range(steps):
        decision = policy.act({"embedding": seen[:, step]}, noise[:, step], carry)
        carry = {name: array.copy() for name, array in decision.carry.items()}
        found.append(np.concatenate([carry["rssm.deter"], carry["rssm.stoch"]], -1))
    # Box and Muller: two uniform numbers make a normal one, whose share of the distribution is uniform again.
    pairs = noise.astype(np.float64).reshape(2, steps, 3, 2)
    normal = np.sqrt(-2.0 * np.log1p(-pairs[..., 0])) * np.cos(2.0 * np.pi * pairs[..., 1])
    uniform = torch.special.ndtr(torch.from_numpy(normal))
    actions, is_first = torch.zeros(2, steps, 2).double(), torch.zeros(2, steps, dtype=torch.bool)
    with torch.no_grad():
        state, _ = GAUSSIAN.observe(views, torch.from_numpy(seen).double(), actions, is_first, uniform)
    assert np.stack(found, 1) == pytest.approx(state.feature().numpy(), abs=1e-5)
