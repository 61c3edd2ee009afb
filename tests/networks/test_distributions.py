import math

import pytest
import torch
from torch import distributions

from rl4sys.networks import (
    LOG_STD_HIGH,
    action_likelihood,
    categorical,
    gaussian,
    masked,
    multi_categorical,
    tanh_gaussian,
)
from rl4sys.policy import MixedAction


@pytest.fixture
def draw() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def normal(draw: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


def test_categorical_is_that_of_torch(draw: torch.Generator) -> None:
    logits, action = normal(draw, 50, 6) * 5, torch.arange(50) % 6
    expected = distributions.Categorical(logits=logits)
    found = categorical(logits, action, None)
    torch.testing.assert_close(found.log_prob, expected.log_prob(action))
    torch.testing.assert_close(found.entropy, expected.entropy())


def test_a_masked_categorical_is_that_of_the_allowed_choices_alone(draw: torch.Generator) -> None:
    logits, mask = normal(draw, 50, 6), torch.tensor([True, False, True, True, False, False])
    expected = distributions.Categorical(logits=logits[:, mask])
    found = categorical(logits, torch.full((50,), 3), mask.expand(50, 6))
    torch.testing.assert_close(found.log_prob, expected.log_prob(torch.tensor(2)))
    torch.testing.assert_close(found.entropy, expected.entropy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_a_masked_categorical_are_finite_and_zero_where_forbidden(dtype: torch.dtype) -> None:
    logits = torch.tensor([[1.0, 50.0, -30.0], [0.0, 0.0, 0.0]], dtype=dtype, requires_grad=True)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    log_prob, entropy = categorical(logits, torch.tensor([0, 2]), mask)
    (log_prob + entropy).sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~mask] == 0).all()


def test_several_choices_add_up_as_independent_ones(draw: torch.Generator) -> None:
    logits, action = normal(draw, 40, 9), torch.stack([torch.arange(40) % n for n in (2, 4, 3)], dim=1)
    parts = [distributions.Categorical(logits=part) for part in torch.split(logits, [2, 4, 3], dim=1)]
    found = multi_categorical(logits, action, None, (2, 4, 3))
    torch.testing.assert_close(found.log_prob, sum(p.log_prob(action[:, i]) for i, p in enumerate(parts)))
    torch.testing.assert_close(found.entropy, sum(p.entropy() for p in parts))


def test_choices_and_numbers_of_a_mixed_action_add_up(draw: torch.Generator) -> None:
    space = MixedAction((2, 3), (-1.0, -1.0), (1.0, 1.0))
    outputs, numbers, log_std = normal(draw, 30, 7), normal(draw, 30, 2), normal(draw, 2)
    choices = torch.stack([torch.arange(30) % 2, torch.arange(30) % 3], dim=1)
    found = action_likelihood(space, outputs, torch.cat([choices, numbers], dim=1), None, log_std)
    chosen = multi_categorical(outputs[:, :5], choices, None, (2, 3))
    vector = gaussian(outputs[:, 5:], log_std, numbers)
    torch.testing.assert_close(found.log_prob, chosen.log_prob + vector.log_prob)
    torch.testing.assert_close(found.entropy, chosen.entropy + vector.entropy)


def test_each_of_several_choices_has_its_own_part_of_the_mask(draw: torch.Generator) -> None:
    logits, action = normal(draw, 3, 4), torch.tensor([[0, 1], [0, 0], [0, 1]])
    mask = torch.tensor([[True, False, True, True]] * 3)
    found = multi_categorical(logits, action, mask, (2, 2))
    expected = distributions.Categorical(logits=logits[:, 2:])
    torch.testing.assert_close(found.log_prob, expected.log_prob(action[:, 1]))


@pytest.mark.parametrize("rows", [(), (30,)], ids=["one deviation for all", "one for each row"])
def test_gaussian_is_that_of_torch(rows: tuple[int, ...], draw: torch.Generator) -> None:
    mean, action, log_std = normal(draw, 30, 3), normal(draw, 30, 3), normal(draw, *rows, 3)
    expected = distributions.Independent(distributions.Normal(mean, log_std.exp().expand(30, 3)), 1)
    found = gaussian(mean, log_std, action)
    torch.testing.assert_close(found.log_prob, expected.log_prob(action))
    torch.testing.assert_close(found.entropy, expected.entropy())


def test_a_squashed_gaussian_is_the_transformed_one_of_torch(draw: torch.Generator) -> None:
    mean, log_std, noise = normal(draw, 30, 2), normal(draw, 30, 2) * 0.3, normal(draw, 30, 2)
    normals = distributions.Normal(mean, log_std.exp())
    expected = distributions.TransformedDistribution(normals, [distributions.TanhTransform()])
    action, log_prob = tanh_gaussian(mean, log_std, noise)
    torch.testing.assert_close(action, torch.tanh(mean + log_std.exp() * noise))
    torch.testing.assert_close(log_prob, expected.log_prob(action).sum(-1))


def test_the_gradient_of_a_squashed_gaussian_is_that_of_its_differences(draw: torch.Generator) -> None:
    mean, log_std, noise = (normal(draw, 6, 2) for _ in range(3))
    log_std[0] = LOG_STD_HIGH + 1.0  # clipped: its gradient is zero
    inputs = (mean.requires_grad_(), log_std.requires_grad_(), noise)
    assert torch.autograd.gradcheck(tanh_gaussian, inputs)


def test_a_saturated_squashed_gaussian_has_finite_density_and_gradient() -> None:
    mean = torch.tensor([[40.0], [-40.0]], requires_grad=True)
    _, log_prob = tanh_gaussian(mean, torch.zeros(2, 1), torch.zeros(2, 1))
    log_prob.sum().backward()
    expected = -0.5 * math.log(2 * math.pi) - 2 * (math.log(2) - 40.0)
    torch.testing.assert_close(log_prob.detach(), torch.full((2,), expected))
    assert torch.isfinite(mean.grad).all()


def test_without_a_mask_scores_pass_as_they_are() -> None:
    scores = torch.ones(2, 3)
    assert masked(scores, None) is scores
