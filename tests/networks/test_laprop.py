"""LaProp and adaptive clipping against plain float64."""

import numpy as np
import pytest
import torch

from rl4sys.networks import BatchSplitter, Optimizer, OptimizerSettings, Parameters
from rl4sys.networks.laprop import clip_adaptively, laprop_step
from rl4sys.policy import Tensor


def test_laprop_normalises_a_gradient_before_it_averages() -> None:
    rng = np.random.default_rng(0)
    flat, momentum, square = (torch.zeros(4, dtype=torch.float64) for _ in range(3))
    weights, average, variance = np.zeros(4), np.zeros(4), np.zeros(4)
    for step in range(1, 6):
        gradient = rng.normal(size=4)
        laprop_step(flat, torch.from_numpy(gradient), momentum, square, step, 0.1)
        variance = 0.999 * variance + 0.001 * gradient**2
        average = 0.9 * average + 0.1 * gradient / np.sqrt(variance / (1 - 0.999**step))
        weights -= 0.1 * average / (1 - 0.9**step)
    assert flat.numpy() == pytest.approx(weights, rel=1e-6)


def test_the_gradient_of_a_tensor_is_clipped_to_a_share_of_its_norm() -> None:
    rng = np.random.default_rng(0)
    shapes, scales = ((4, 3), (5,), (2,)), (1.0, 1e-3, 10.0)
    weights = [rng.normal(size=shape) for shape in shapes]
    before = [scale * rng.normal(size=shape) for scale, shape in zip(scales, shapes, strict=True)]
    gradients = [torch.from_numpy(gradient.copy()) for gradient in before]
    clip_adaptively([torch.from_numpy(weight) for weight in weights], gradients, 0.3)
    for weight, gradient, found in zip(weights, before, gradients, strict=True):
        limit = 0.3 * np.sqrt((weight**2).sum())
        expected = gradient * min(1.0, limit / np.sqrt((gradient**2).sum()))
        assert found.numpy() == pytest.approx(expected, rel=1e-6)
    assert np.array_equal(gradients[1].numpy(), before[1])


def test_a_tensor_of_zeros_still_moves() -> None:
    gradients = [torch.full((4,), 5.0).double()]
    clip_adaptively([torch.zeros(4).double()], gradients, 0.3)
    assert gradients[0].norm().item() == pytest.approx(0.3e-3, rel=1e-6)


def test_the_learning_rate_grows_during_the_warm_up() -> None:
    parameters = Parameters([Tensor("w", (1,))], torch.device("cpu"))
    settings = OptimizerSettings(1.0, rule="laprop", warmup_steps=4)
    optimizer = Optimizer(parameters, settings, BatchSplitter())
    places = [0.0]
    for _ in range(6):
        optimizer.minimize(lambda: parameters.views["w"].sum())
        places.append(parameters.flat.item())
    assert np.diff(places) == pytest.approx([-0.25, -0.5, -0.75, -1.0, -1.0, -1.0], rel=1e-4)


def test_laprop_resumes_exactly() -> None:
    def trained(steps: int, optimizer: Optimizer) -> Optimizer:
        for _ in range(steps):
            optimizer.minimize(lambda: (optimizer.parameters.views["w"] - 3.0).square().sum())
        return optimizer

    def fresh() -> Optimizer:
        parameters = Parameters([Tensor("w", (3,))], torch.device("cpu"))
        settings = OptimizerSettings(0.1, rule="laprop", adaptive_clip=0.3, warmup_steps=5)
        return Optimizer(parameters, settings, BatchSplitter())

    resumed = fresh()
    resumed.restore(trained(4, fresh()).state())
    assert torch.equal(trained(4, resumed).parameters.flat, trained(8, fresh()).parameters.flat)
