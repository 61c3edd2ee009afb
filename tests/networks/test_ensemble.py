from __future__ import annotations

from functools import partial

import pytest
import torch

from rl4sys.experience import ArraySpec
from rl4sys.networks import (
    CnnConfig,
    EnsembleProgram,
    MlpConfig,
    NetworkConfig,
    Parameters,
    TorchProgram,
    stacked_parameters,
    uniform_fan_in,
)
from rl4sys.policy import Program, ProgramBuilder

ROWS, MEMBERS = 7, 3
BODIES: dict[str, NetworkConfig] = {
    "relu": MlpConfig(hidden_dims=(5, 4), activation="relu"),
    "tanh": MlpConfig(hidden_dims=(5, 4), activation="tanh"),
    "silu": MlpConfig(hidden_dims=(5, 4), activation="silu"),
    "layer norm": MlpConfig(hidden_dims=(5, 4), activation="relu", layer_norm=True),
    "no hidden layer": MlpConfig(hidden_dims=()),
    "convolutions": CnnConfig(filters=(3, 2), kernels=(2, 2), strides=(1, 1), hidden_dims=(5,)),
    "convolutions alone": CnnConfig(filters=(3,), kernels=(2,), strides=(1,), hidden_dims=(), activation="silu"),
}


def critic(body: NetworkConfig) -> tuple[Program, str]:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (3,)), ArraySpec("picture", "uint8", (4, 3, 1))))
    features = body.features(builder, "critic", standardize=True)
    action = builder.input(ArraySpec("action", "float32", (2,)))
    joined = builder.joined([features, action])
    value = builder.linear(body.body(builder, joined, "critic"), 1, "critic.value")
    return builder.program(), value


def made(body: NetworkConfig) -> tuple[Program, str, Parameters]:
    program, value = critic(body)
    shared = ["seen.mean", "seen.scale"]
    parameters = stacked_parameters(
        program,
        MEMBERS,
        shared,
        torch.device("cpu"),
        partial(uniform_fan_in, generator=torch.Generator().manual_seed(1)),
    )
    parameters.freeze(*shared)
    parameters.set("seen.mean", torch.tensor([0.5, -1.0, 2.0]))
    return program, value, parameters


def shown() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    return {
        "seen": torch.randn(ROWS, 3, generator=generator),
        "picture": torch.randint(0, 255, (ROWS, 4, 3, 1), generator=generator, dtype=torch.uint8),
        "action": torch.randn(ROWS, 2, generator=generator).requires_grad_(),
    }


def alone(program: Program, stacked: Parameters, member: int) -> Parameters:
    """One member as plain parameters."""
    single = Parameters(program.tensors, torch.device("cpu"))
    single.freeze("seen.mean", "seen.scale")
    for name, view in single.views.items():
        source = stacked.views[name]
        single.set(name, (source[member] if source.ndim > view.ndim else source).detach())
    return single


@pytest.mark.parametrize("name", BODIES)
def test_every_member_computes_and_learns_as_if_it_were_alone(name: str) -> None:
    program, value, parameters = made(BODIES[name])
    factors = torch.arange(1.0, MEMBERS + 1.0)[:, None]
    together, inputs = EnsembleProgram(program, parameters.views), shown()
    found = together(inputs)[value].squeeze(-1)
    (found.square() * factors).sum().backward()
    by_action = inputs["action"].grad
    expected_by_action = torch.zeros(ROWS, 2)
    for member in range(MEMBERS):
        single, own = alone(program, parameters, member), shown()
        expected = TorchProgram(program, single)(own)[value].squeeze(-1)
        torch.testing.assert_close(found[member], expected)
        (expected.square() * factors[member]).sum().backward()
        expected_by_action += own["action"].grad
        for tensor, view in single.views.items():
            if view.requires_grad:
                torch.testing.assert_close(parameters.views[tensor].grad[member], view.grad, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(by_action, expected_by_action, rtol=1e-4, atol=1e-5)


def test_frozen_members_pass_on_gradients_and_keep_none() -> None:
    program, value, parameters = made(BODIES["relu"])
    frozen = {name: view.detach() for name, view in parameters.views.items()}
    inputs = shown()
    EnsembleProgram(program, frozen)(inputs)[value].sum().backward()
    assert inputs["action"].grad.abs().sum() > 0
    assert not parameters.gradient.any()


def test_gradients_add_up_over_two_passes() -> None:
    program, value, parameters = made(BODIES["relu"])
    together = EnsembleProgram(program, parameters.views)
    together(shown())[value].sum().backward()
    once = parameters.gradient.clone()
    together(shown())[value].sum().backward()
    torch.testing.assert_close(parameters.gradient, 2.0 * once)


def test_a_network_may_be_called_twice_in_one_loss() -> None:
    program, value, parameters = made(BODIES["relu"])
    together = EnsembleProgram(program, parameters.views)
    early, late = together(shown())[value].sum(), together(shown())[value].square().sum()
    (early + late).backward()
    both = parameters.gradient.clone()
    parameters.gradient.zero_()
    together(shown())[value].sum().backward()
    together(shown())[value].square().sum().backward()
    torch.testing.assert_close(both, parameters.gradient)


@pytest.mark.parametrize("members", [None, MEMBERS])
@pytest.mark.parametrize("fused", [True, False])
def test_heads_that_share_a_layer_have_the_gradients_of_plain_ops(members: int | None, fused: bool) -> None:
    builder = ProgramBuilder((ArraySpec("seen", "float32", (3,)),))
    body = MlpConfig(hidden_dims=(5,)).body(builder, builder.features(standardize=False), "actor")
    mean, log_std = (builder.linear(body, 2, f"actor.{part}") for part in ("mean", "log_std"))
    program, initialize = builder.program(), partial(uniform_fan_in, generator=torch.Generator().manual_seed(1))
    parameters = stacked_parameters(program, members or 1, [], torch.device("cpu"), initialize)
    found = []
    for keep in ((), (body,)):
        # A register that is kept is not fused over.
        run = EnsembleProgram(program, parameters.views, fused=fused, keep=keep)
        assert len(run.steps) == (1 if not keep else 3)
        parameters.gradient.zero_()
        inputs = {"seen": torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(2)).requires_grad_()}
        registers = run(inputs)
        (registers[mean].square().sum() + registers[log_std].exp().sum()).backward()
        found.append((registers[mean].detach(), parameters.gradient.clone(), inputs["seen"].grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_a_result_is_differentiated_once() -> None:
    program, value, parameters = made(BODIES["relu"])
    loss = EnsembleProgram(program, parameters.views)(shown())[value].sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="differentiated twice"):
        loss.backward()


@pytest.mark.parametrize("name", BODIES)
def test_plain_ops_find_the_same_gradients_as_fused_layers(name: str) -> None:
    program, value, parameters = made(BODIES[name])
    found = []
    for fused in (True, False):
        inputs = shown()
        parameters.gradient.zero_()
        EnsembleProgram(program, parameters.views, fused=fused)(inputs)[value].square().sum().backward()
        found.append((parameters.gradient.clone(), inputs["action"].grad))
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_batches_of_different_sizes_may_follow_each_other() -> None:
    program, value, parameters = made(BODIES["tanh"])
    together = EnsembleProgram(program, parameters.views)
    with torch.no_grad():
        whole = together(shown())[value].clone()
        part = together({name: array[:3] for name, array in shown().items()})[value].clone()
        torch.testing.assert_close(part, whole[:, :3])
        torch.testing.assert_close(together(shown())[value], whole)
