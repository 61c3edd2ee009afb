"""Quantile regression against a plain loop."""

import numpy as np
import pytest
import torch

from rl4sys.networks.quantiles import quantile_huber


def test_the_loss_is_that_of_the_paper() -> None:
    generator = torch.Generator().manual_seed(0)
    quantiles, target = (torch.randn(3, n, generator=generator, dtype=torch.float64) * 2 for n in (4, 5))
    expected = np.zeros(3)
    for row in range(3):
        for i, theta in enumerate(quantiles[row].tolist()):
            errors = target[row].numpy() - theta
            huber = np.where(np.abs(errors) <= 1, 0.5 * errors**2, np.abs(errors) - 0.5)
            expected[row] += (np.abs((i + 0.5) / 4 - (errors < 0)) * huber).mean()
    assert quantile_huber(quantiles, target).numpy() == pytest.approx(expected)


def test_minimising_the_loss_finds_the_quantiles_of_the_samples() -> None:
    samples = torch.linspace(0.0, 100.0, 1_001).unsqueeze(0)
    quantiles = torch.full((1, 4), 50.0, requires_grad=True)
    optimizer = torch.optim.Adam([quantiles], 1.0)
    for _ in range(400):
        optimizer.zero_grad()
        quantile_huber(quantiles, samples).sum().backward()
        optimizer.step()
    assert quantiles.detach().numpy()[0] == pytest.approx([12.5, 37.5, 62.5, 87.5], abs=1.5)
