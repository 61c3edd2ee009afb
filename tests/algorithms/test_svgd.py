from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rl4sys.algorithms.sql import bandwidth, squashed_score, stein_direction
from rl4sys.experience import Array

BATCH, FIXED, UPDATED, SIZE = 3, 5, 4, 2


def particles() -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(4)
    fixed, score = rng.normal(size=(2, BATCH, FIXED, SIZE))
    return fixed, score, rng.normal(size=(BATCH, UPDATED, SIZE))


def reference(fixed: Array, score: Array, updated: Array) -> Array:
    """Equation 8 of the paper, particle by particle, with the kernel's gradient by central differences."""
    squared = [float(((x - y) ** 2).sum()) for x in fixed for y in updated]
    width = sorted(squared)[(len(squared) - 1) // 2] / math.log(len(fixed) + 1)

    def kernel(x: Array, y: Array) -> float:
        return math.exp(-float(((x - y) ** 2).sum()) / width)

    found = np.zeros_like(updated)
    for j, y in enumerate(updated):
        for x, slope in zip(fixed, score, strict=True):
            nudges = 1e-5 * np.eye(SIZE)
            change = np.array([(kernel(x + n, y) - kernel(x - n, y)) / 2e-5 for n in nudges])
            found[j] += (kernel(x, y) * slope + change) / len(fixed)
    return found


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-8), (torch.float32, 1e-6)])
def test_the_direction_is_that_of_the_paper(dtype: torch.dtype, tolerance: float) -> None:
    arrays = particles()
    found = stein_direction(*(torch.from_numpy(array).to(dtype) for array in arrays))
    expected = np.stack([reference(*one) for one in zip(*arrays, strict=True)])
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_the_score_is_the_gradient_of_the_log_density_before_the_tanh() -> None:
    x = torch.linspace(-3.0, 3.0, 13, dtype=torch.float64).requires_grad_()
    action = torch.tanh(x)
    (expected,) = torch.autograd.grad((torch.sin(3.0 * action) + torch.log(1.0 - action.square())).sum(), x)
    found = squashed_score(action.detach(), 3.0 * torch.cos(3.0 * action.detach()))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_kernels_around_a_particle_sum_to_about_one() -> None:
    distance = torch.full((1, 9, 3), 2.0)
    assert torch.exp(-distance / bandwidth(distance)).sum(1).flatten().tolist() == pytest.approx([0.9] * 3)


def test_equal_particles_give_finite_directions() -> None:
    together = torch.zeros(1, 4, 2)
    assert torch.isfinite(stein_direction(together, torch.ones(1, 4, 2), torch.zeros(1, 3, 2))).all()


def test_particles_spread_over_all_modes_of_a_density() -> None:
    # Two peaks in action space, at ±0.6, one of them twice as likely.
    def slope(action: torch.Tensor) -> torch.Tensor:
        action = action.detach().requires_grad_()
        left, right = (-0.5 * ((action - place) / 0.15) ** 2 for place in (-0.6, 0.6))
        (found,) = torch.autograd.grad(torch.logaddexp(left, right + math.log(2.0)).sum(), action)
        return found

    x = 0.5 * torch.randn(1, 32, 1, generator=torch.Generator().manual_seed(0))
    for _ in range(300):
        action = torch.tanh(x)
        x = x + 0.05 * stein_direction(x, squashed_score(action, slope(action)), x)
    action = torch.tanh(x).flatten()
    assert 0.2 < (action < 0).float().mean() < 0.5
    assert ((action.abs() - 0.6).abs() < 0.3).float().mean() > 0.9
