"""Fused normalisation against the op-by-op expression."""

import torch
import torch.nn.functional as F

from rl4sys.networks.normed_layer import EPSILON, normed, normed_layer


def _plain(x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
    return F.silu(F.rms_norm(x, x.shape[-1:], gain, EPSILON))


def test_values_and_gradients_equal_those_of_autograd() -> None:
    generator = torch.Generator().manual_seed(0)
    x, gain = (torch.randn(s, generator=generator).double().requires_grad_() for s in ((5, 4, 6), (6,)))
    weight = torch.randn(5, 4, 6, generator=generator).double()
    found = torch.autograd.grad((normed(x, gain) * weight).sum(), (x, gain))
    expected = torch.autograd.grad((_plain(x, gain) * weight).sum(), (x, gain))
    assert torch.allclose(normed(x, gain), _plain(x, gain), atol=1e-12)
    assert all(torch.allclose(*pair, atol=1e-12) for pair in zip(found, expected, strict=True))


def test_without_gradients_the_result_is_the_same() -> None:
    x, weight, bias, gain = torch.randn(3, 4), torch.randn(4, 6), torch.randn(6), torch.randn(6)
    with torch.no_grad():
        without = normed_layer(x, weight, bias, gain)
    assert torch.allclose(without, normed_layer(x, weight, bias, gain.requires_grad_()), atol=1e-6)
