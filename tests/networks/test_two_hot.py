"""Two-hot distributions against plain float64."""

import numpy as np
import pytest
import torch
from tests.finite_differences import numerical_gradient

from rl4sys.experience import Array
from rl4sys.networks.two_hot import BINS, TwoHot, symexp, symlog

NUMBERS = torch.tensor([0.0, 1e-3, -1e-3, 0.4, -7.0, 123.4, -5e4, 3e8, -3e8], dtype=torch.float64)


def _two_hot() -> TwoHot:
    return TwoHot(torch.device("cpu"), torch.float64)


def _reference_chances(logits: Array) -> Array:
    weights = np.exp(logits - logits.max(1, keepdims=True))
    chances: Array = weights / weights.sum(1, keepdims=True)
    return chances


def _reference_target(number: float, bins: np.ndarray) -> np.ndarray:
    order = np.argsort(bins)
    above = int(np.searchsorted(bins[order], number, side="right"))
    above = min(max(above, 1), len(bins) - 1)
    low, high = bins[order][above - 1], bins[order][above]
    target = np.zeros(len(bins))
    target[order[above - 1]], target[order[above]] = (high - number) / (high - low), (number - low) / (high - low)
    return target


def test_symlog_and_symexp_are_inverse() -> None:
    assert torch.allclose(symexp(symlog(NUMBERS)), NUMBERS, rtol=1e-9)
    assert symlog(torch.tensor(np.e - 1.0)).item() == pytest.approx(1.0)


def test_symlog_and_its_gradient_are_those_of_the_formula() -> None:
    x = NUMBERS[1:].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(symlog(x).sum(), x)
    numbers = x.detach().numpy()
    assert symlog(x).detach().numpy() == pytest.approx(np.sign(numbers) * np.log(1.0 + np.abs(numbers)), rel=1e-9)
    assert gradient.numpy() == pytest.approx(1.0 / (1.0 + np.abs(numbers)), rel=1e-9)


def test_there_are_255_bins_around_an_exact_zero() -> None:
    bins = _two_hot().bins.numpy()
    assert len(set(bins.tolist())) == BINS
    assert np.array_equal(np.sort(bins), -np.sort(bins)[::-1])


def test_equal_logits_predict_exactly_zero() -> None:
    assert _two_hot().predict(torch.zeros(5, BINS).double()).tolist() == [0.0] * 5
    assert TwoHot(torch.device("cpu")).predict(torch.zeros(5, BINS)).tolist() == [0.0] * 5


def test_the_prediction_is_the_expected_bin() -> None:
    two_hot, logits = _two_hot(), torch.randn(6, BINS, generator=torch.Generator().manual_seed(0)).double()
    expected = _reference_chances(logits.numpy()) @ two_hot.bins.numpy()
    assert two_hot.predict(logits).numpy() == pytest.approx(expected, rel=1e-6)


def test_the_loss_is_the_cross_entropy_to_the_two_nearest_bins() -> None:
    logits = torch.randn(len(NUMBERS), BINS, generator=torch.Generator().manual_seed(1)).double().requires_grad_()
    two_hot = _two_hot()
    targets = np.stack([_reference_target(number, two_hot.bins.numpy()) for number in NUMBERS.tolist()])

    def reference(scores: Array) -> Array:
        loss: Array = -(targets * np.log(_reference_chances(scores))).sum(1)
        return loss

    losses = two_hot.loss(logits.log_softmax(-1), NUMBERS)
    assert losses.detach().numpy() == pytest.approx(reference(logits.detach().numpy()), rel=1e-6)
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    # The gradient of a cross-entropy: what is predicted minus what is true.
    assert gradient.numpy() == pytest.approx(_reference_chances(logits.detach().numpy()) - targets, abs=1e-6)
    expected = numerical_gradient(lambda scores: reference(scores).sum(), logits.detach().numpy())
    assert gradient.numpy() == pytest.approx(expected, abs=1e-6)


def test_the_target_of_a_number_predicts_that_number() -> None:
    two_hot = _two_hot()
    targets = torch.zeros(len(NUMBERS), BINS).double().scatter_(1, *two_hot._target(NUMBERS))
    assert two_hot.mean(targets).numpy() == pytest.approx(NUMBERS.numpy(), rel=1e-6, abs=1e-9)


def test_several_numbers_add_up() -> None:
    two_hot, log_chances = _two_hot(), torch.randn(3, BINS).double().log_softmax(-1)
    first, second = torch.tensor([1.0, -2.0, 0.0]).double(), torch.tensor([0.5, 900.0, -4.0]).double()
    both = two_hot.loss(log_chances, first, second)
    assert torch.allclose(both, two_hot.loss(log_chances, first) + two_hot.loss(log_chances, second))
