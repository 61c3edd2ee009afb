from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.networks import BatchSplitter, Optimizer, OptimizerSettings, Parameters, TorchProgram, from_spec
from rl4sys.policy import Tensor
from rl4sys.state import StateMismatch

from .specs import mlp

TENSORS = [Tensor("weight", (3, 2)), Tensor("bias", (2,)), Tensor("epsilon", ())]
CPU = torch.device("cpu")


def optimizer(parameters: Parameters, **settings: Any) -> Optimizer:
    return Optimizer(parameters, OptimizerSettings(**settings), BatchSplitter())


def parameters(seed: int = 0) -> Parameters:
    made = Parameters(TENSORS, CPU)
    made.flat.copy_(torch.randn(9, generator=torch.Generator().manual_seed(seed)))
    return made


def loss_of(views: Mapping[str, torch.Tensor], step: int) -> torch.Tensor:
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))
    return ((x @ views["weight"] + views["bias"]) * views["epsilon"] - x[:, :2] * 20.0).square().mean()


def test_writing_the_flat_vector_changes_the_module() -> None:
    module, flat = from_spec(mlp())
    observation = {"state": torch.ones(1, 3)}
    logits = mlp().head.inputs[0]
    before = module(observation)[logits]
    flat.flat.fill_(0.5)
    assert not torch.equal(before, module(observation)[logits])


def test_views_lie_in_the_order_of_the_layout() -> None:
    made = parameters()
    assert torch.equal(made.views["bias"], made.flat[6:8])
    assert made.views["epsilon"].shape == ()
    assert made.views["epsilon"] == made.flat[8]


def test_gradients_land_in_the_flat_gradient_and_add_up() -> None:
    made = parameters()
    loss_of(made.views, 0).backward()
    expected = torch.cat([view.grad.reshape(-1) for view in made.views.values()])
    assert torch.equal(made.gradient, expected)
    loss_of(made.views, 0).backward()
    torch.testing.assert_close(made.gradient, 2 * expected)


def test_programs_that_share_a_tensor_share_its_numbers() -> None:
    made = Parameters([*TENSORS, TENSORS[1]], CPU)
    assert made.layout.size == 9


def test_one_name_cannot_have_two_shapes() -> None:
    with pytest.raises(ValueError, match=r"'bias' has shape \(2,\) in one program and \(3,\) in another"):
        Parameters([*TENSORS, Tensor("bias", (3,))], CPU)


def test_a_tensor_may_be_empty() -> None:
    made = Parameters([Tensor("nothing", (0, 2)), *TENSORS], CPU)
    assert made.views["nothing"].shape == (0, 2)
    assert torch.equal(made.views["epsilon"], made.flat[8])


def test_frozen_tensors_are_set_and_not_learned() -> None:
    made = parameters()
    made.freeze("epsilon")
    made.set("epsilon", torch.tensor(0.25))
    optimizer(made, lr=0.1).minimize(lambda: loss_of(made.views, 0))
    assert made.flat[8] == 0.25
    assert made.gradient[8] == 0


def test_a_copy_is_equal_and_independent() -> None:
    made = parameters()
    twin = made.copy()
    assert torch.equal(twin.flat, made.flat)
    made.flat.zero_()
    assert twin.flat.abs().min() > 0
    assert not any(view.requires_grad for view in twin.views.values())


@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_the_optimizer_equals_adam_on_separate_parameters(max_norm: float | None) -> None:
    made = parameters()
    separate = {name: torch.nn.Parameter(view.detach().clone()) for name, view in made.views.items()}
    flat = optimizer(made, lr=0.01, epsilon=1e-5, max_grad_norm=max_norm)
    adam = torch.optim.Adam(separate.values(), lr=0.01, eps=1e-5)
    for step in range(20):
        flat.minimize(lambda: loss_of(made.views, step))  # noqa: B023  # called at once
        adam.zero_grad()
        loss_of(separate, step).backward()
        limit = float("inf") if max_norm is None else max_norm
        expected_norm = torch.nn.utils.clip_grad_norm_(separate.values(), limit)
        adam.step()
        torch.testing.assert_close(flat.gradient_norm, expected_norm)
        expected = torch.cat([p.detach().reshape(-1) for p in separate.values()])
        torch.testing.assert_close(made.flat, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("steps", [0, 5])
def test_a_restored_optimizer_continues_exactly(steps: int) -> None:
    made, other = parameters(), parameters()
    adam, twin = (optimizer(each, lr=0.01, max_grad_norm=1.0) for each in (made, other))
    for step in range(steps):
        adam.minimize(loss_of, made.views, step)
    twin.restore(adam.state())
    for step in range(5):
        adam.minimize(loss_of, made.views, step)
        twin.minimize(loss_of, other.views, step)
    assert torch.equal(made.flat, other.flat)


def test_a_saved_state_does_not_change_with_later_steps() -> None:
    made = parameters()
    adam = optimizer(made, lr=0.01)
    adam.minimize(loss_of, made.views, 0)
    state: Mapping[str, Any] = adam.state()
    before = {name: np.copy(state[name]) for name in ("parameters", "first_moment")}
    adam.minimize(loss_of, made.views, 1)
    for name, array in before.items():
        np.testing.assert_array_equal(state[name], array)


def test_a_state_with_a_part_missing_is_refused() -> None:
    with pytest.raises(StateMismatch, match="missing"):
        optimizer(parameters(), lr=0.01).restore({"step": 1.0})


def test_a_program_reads_the_parameters_it_was_given() -> None:
    program = mlp().program
    made = Parameters((*program.tensors, Tensor("critic", (7,))), CPU)
    module = TorchProgram(program, made)
    made.set("actor.action.bias", torch.arange(4.0))
    logits = module({"state": torch.zeros(2, 3)})[mlp().head.inputs[0]]
    assert logits.tolist() == [[0, 1, 2, 3]] * 2
