"""Steps that are not finite are refused before anything has changed; batches too large are split."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from rl4sys.networks import BatchSplitter, NonFiniteUpdate, Optimizer, OptimizerSettings, Parameters
from rl4sys.policy import Tensor
from rl4sys.state import StateMismatch, digest


def made(max_grad_norm: float | None = None) -> Optimizer:
    parameters = Parameters([Tensor("weight", (3,)), Tensor("bias", (1,))], torch.device("cpu"))
    parameters.flat.copy_(torch.arange(4.0))
    optimizer = Optimizer(parameters, OptimizerSettings(0.1, max_grad_norm=max_grad_norm), BatchSplitter())
    views = parameters.views
    optimizer.minimize(lambda: views["weight"].square().sum() + views["bias"].sum())
    return optimizer


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1e30])
def test_a_loss_or_gradient_that_is_not_finite_changes_nothing(factor: float) -> None:
    optimizer = made()
    before = digest(optimizer.state())
    with pytest.raises(NonFiniteUpdate):
        optimizer.minimize(lambda: (optimizer.parameters.views["weight"] * factor).square().sum())
    assert digest(optimizer.state()) == before


@pytest.mark.parametrize("max_grad_norm", [None, 1.0])
def test_the_tensor_whose_gradient_is_not_finite_is_named(max_grad_norm: float | None) -> None:
    optimizer = made(max_grad_norm)
    before = digest(optimizer.state())
    optimizer.parameters.gradient.fill_(1.0)
    optimizer.parameters.gradient[3] = math.nan
    with pytest.raises(NonFiniteUpdate, match=r"not finite in bias\.") as caught:
        optimizer.step()
    assert caught.value.tensors == ("bias",)
    assert digest(optimizer.state()) == before


def test_a_finite_gradient_with_an_infinite_norm_has_its_own_message() -> None:
    optimizer = made()
    optimizer.parameters.gradient.fill_(1e30)
    with pytest.raises(NonFiniteUpdate, match="they are too large"):
        optimizer.step()


def limited_loss(optimizer: Optimizer, limit: int, sizes: list[int]) -> Callable[..., tuple[torch.Tensor, ...]]:
    """The mean of bias · rows, which runs out of memory for more rows than the limit."""

    def loss(rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        sizes.append(len(rows))
        if len(rows) > limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        each = optimizer.parameters.views["bias"] * rows
        return each.mean(), each.detach().mean(), each

    return loss


def test_a_batch_that_does_not_fit_is_split_until_it_does() -> None:
    optimizer, rows, sizes = made(), torch.arange(10.0), []
    bias = optimizer.parameters.views["bias"].item()
    value, mean, each = optimizer.differentiate(limited_loss(optimizer, 3, sizes), rows)
    assert (optimizer.splitter.parts, sizes) == (4, [10, 5, 3, 3, 3, 1])
    assert optimizer.parameters.gradient.tolist() == pytest.approx([0.0, 0.0, 0.0, 4.5])
    assert [value.item(), mean.item()] == pytest.approx([4.5 * bias] * 2)
    torch.testing.assert_close(each, rows * bias)


def test_a_loss_over_parts_that_returns_a_number_gives_the_mean() -> None:
    optimizer = made()
    optimizer.splitter.parts = 3
    bias = optimizer.parameters.views["bias"]
    assert optimizer.differentiate(lambda rows: (bias * rows).mean(), torch.arange(10.0)).item() == pytest.approx(
        4.5 * bias.item()
    )


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory")],
)
def test_out_of_memory_with_a_single_row_is_raised(error: Exception) -> None:
    def loss(rows: torch.Tensor) -> torch.Tensor:
        raise error

    with pytest.raises(type(error)):
        made().differentiate(loss, torch.zeros(8))


def test_other_errors_are_not_treated_as_out_of_memory() -> None:
    def loss(rows: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("shapes do not fit")

    optimizer = made()
    with pytest.raises(RuntimeError, match="shapes"):
        optimizer.differentiate(loss, torch.zeros(8))
    assert optimizer.splitter.parts == 1
    assert not optimizer.is_differentiating


def test_every_part_of_a_split_batch_must_have_a_finite_loss() -> None:
    optimizer = made()
    optimizer.splitter.parts = 2
    bias = optimizer.parameters.views["bias"]
    before = digest(optimizer.state())
    with pytest.raises(NonFiniteUpdate, match="The loss is inf"):
        optimizer.minimize(lambda rows: (bias + rows).mean(), torch.tensor([math.inf, 0.0, 0.0, 0.0]))
    assert digest(optimizer.state()) == before


def test_a_loss_without_a_batch_is_never_split() -> None:
    optimizer = made()
    optimizer.splitter.parts = 2
    assert optimizer.minimize(lambda: optimizer.parameters.views["bias"].sum()).isfinite()


def test_a_state_of_another_size_is_refused() -> None:
    optimizer = made()
    state = {**optimizer.state(), "parameters": torch.zeros(1).numpy()}
    with pytest.raises(StateMismatch, match="has 1 parameters; these networks have 4"):
        optimizer.restore(state)
