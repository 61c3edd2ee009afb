"""A step that is not finite is refused before anything has changed; a batch too large is taken in parts."""

from __future__ import annotations

import math

import pytest
import torch

from rl4sys.networks import Accumulation, FlatAdam, NonFiniteUpdate, Parameters
from rl4sys.policy import Tensor
from rl4sys.state import digest


def made(max_norm: float | None = None) -> tuple[Parameters, FlatAdam]:
    parameters = Parameters([Tensor("weight", (3,)), Tensor("bias", (1,))], torch.device("cpu"))
    parameters.flat.copy_(torch.arange(4.0))
    adam = FlatAdam(parameters, lr=0.1, epsilon=1e-8, max_norm=max_norm)
    adam.step(parameters.views["weight"].square().sum() + parameters.views["bias"].sum())
    return parameters, adam


def everything(parameters: Parameters, adam: FlatAdam) -> str:
    return digest({"flat": parameters.flat.numpy(), "adam": adam.state()})


@pytest.mark.parametrize("factor", [math.nan, math.inf, 1e30])
def test_a_loss_or_gradient_that_is_not_finite_changes_nothing(factor: float) -> None:
    parameters, adam = made()
    before = everything(parameters, adam)
    with pytest.raises(NonFiniteUpdate):
        adam.step((parameters.views["weight"] * factor).square().sum())
    assert everything(parameters, adam) == before


@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_the_tensor_whose_gradient_is_not_finite_is_named(max_norm: float | None) -> None:
    parameters, adam = made(max_norm)
    before = everything(parameters, adam)
    parameters.gradient.fill_(1.0)
    parameters.gradient[3] = math.nan
    with pytest.raises(NonFiniteUpdate, match=r"not finite in bias\.") as caught:
        adam.descend()
    assert caught.value.tensors == ("bias",)
    assert everything(parameters, adam) == before


def test_only_the_tensors_of_a_part_are_named() -> None:
    parameters, _ = made()
    parameters.gradient.fill_(math.nan)
    assert parameters.part(slice(3, None)).faulty() == ["bias"]
    assert parameters.part(slice(0, 3)).faulty() == ["weight"]


def test_gradients_that_are_finite_but_too_large_are_told_apart() -> None:
    parameters, adam = made()
    parameters.gradient.fill_(1e30)
    with pytest.raises(NonFiniteUpdate, match="they are too large"):
        adam.descend()


def test_memory_that_runs_out_splits_a_batch_until_it_fits() -> None:
    parameters, _ = made()
    accumulation = Accumulation()
    data = torch.arange(10.0)
    sizes: list[int] = []

    def add(part: slice | None) -> int:
        rows = data if part is None else data[part]
        sizes.append(len(rows))
        if len(rows) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        (parameters.views["bias"] * rows.sum() / len(data)).sum().backward()
        return len(rows)

    assert accumulation.gradient(parameters, 10, add) == [3, 3, 3, 1]
    assert (accumulation.parts, sizes[:2]) == (4, [10, 5])
    assert parameters.gradient.tolist() == [0.0, 0.0, 0.0, 4.5]


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory")],
)
def test_memory_of_the_machine_counts_too_and_a_single_row_fails(error: Exception) -> None:
    def add(part: slice | None) -> None:
        raise error

    parameters, _ = made()
    with pytest.raises(type(error)):
        Accumulation().gradient(parameters, 8, add)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    accumulation = Accumulation()

    def add(part: slice | None) -> None:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes"):
        accumulation.gradient(made()[0], 8, add)
    assert accumulation.parts == 1
