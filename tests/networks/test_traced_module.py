"""A user's module becomes a policy program that computes the same in torch and in numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from own_networks import History, Residual
from rl4sys.config import ConfigError
from rl4sys.experience import ArraySpec
from rl4sys.networks import NETWORKS, Parameters, TorchProgram, UnsuitableNetwork
from rl4sys.policy import TORCH_MODULE, BoxAction, Head, NumpyPolicy, PolicySpec, ProgramBuilder
from rl4sys.server.workers.learner_config import resolve

OBSERVATION = ArraySpec("observation", "float32", (5,))


def written(module: str) -> tuple[ProgramBuilder, str]:
    builder = ProgramBuilder((OBSERVATION,))
    return builder, NETWORKS.parse({"type": "module", "module": module}).body(builder, "observation", "actor")


def copied(module: nn.Module, parameters: Parameters) -> None:
    """Give the program the weights of the module; its matrices are [in, out]."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.Linear):
            parameters.set(f"actor.module.{name}.weight", layer.weight.T)
            parameters.set(f"actor.module.{name}.bias", layer.bias)
        if isinstance(layer, nn.Conv1d):
            parameters.set(f"actor.module.{name}.kernel", layer.weight)
            parameters.set(f"actor.module.{name}.bias", layer.bias)
        if isinstance(layer, nn.LayerNorm):
            parameters.set(f"actor.module.{name}.gain", layer.weight)
            parameters.set(f"actor.module.{name}.bias", layer.bias)


def test_the_program_computes_what_the_module_does() -> None:
    module, (builder, output) = Residual(5), written("own_networks:Residual")
    program = builder.program()
    parameters = Parameters(program.tensors, torch.device("cpu"))
    copied(module, parameters)
    rows = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    found = TorchProgram(program, parameters)({"observation": rows})[output]
    assert found.shape == (6, 13)
    assert torch.allclose(found, module(rows), atol=1e-6)
    action = BoxAction((-1e9,) * 13, (1e9,) * 13)
    policy = NumpyPolicy(PolicySpec(action, program, Head("deterministic", (output,))), parameters.flat.numpy())
    acted = policy.act({"observation": rows.numpy()}, np.zeros((6, 0), np.float32)).action
    assert np.allclose(acted, found.detach().numpy(), atol=1e-5)


def test_a_module_may_convolve_a_history() -> None:
    module = History(32)
    builder = ProgramBuilder((ArraySpec("observation", "float32", (32,)),))
    output = NETWORKS.parse({"type": "module", "module": "own_networks:History"}).body(builder, "observation", "actor")
    parameters = Parameters(builder.program().tensors, torch.device("cpu"))
    copied(module, parameters)
    rows = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    found = TorchProgram(builder.program(), parameters)({"observation": rows})[output]
    assert torch.allclose(found, module(rows), atol=1e-6)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("own_networks:Spectrum", "uses the parameter .scale. directly"),
        ("own_networks:Scaled", "^'elu' with .*alpha.*has no counterpart"),
        ("own_networks:Sorted", "^'sort' has no counterpart"),
    ],
)
def test_a_module_without_counterpart_is_one_op_that_names_the_reason(module: str, reason: str) -> None:
    builder, _ = written(module)
    (op,) = builder.program().ops
    assert op.kind == TORCH_MODULE
    assert re.search(reason, str(op.settings["reason"]))


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("own_networks:Nothing", "cannot be made"),
        ("own_networks:Matrix", r"returns \(4, 1, 5\) for 4 rows; expected a vector"),
        ("own_networks:AcrossRows", "mixes the rows"),
        ("own_networks:Branching", "mixes the rows"),
        ("own_networks:Dropping", "leave out dropout"),
        ("own_networks:Normed", "use LayerNorm"),
    ],
)
def test_a_module_that_is_no_function_of_one_row_is_refused(module: str, reason: str) -> None:
    with pytest.raises(UnsuitableNetwork, match=reason):
        written(module)


def test_a_server_imports_no_modules_for_clients() -> None:
    with pytest.raises(ConfigError, match="type module are for local runs"):
        resolve("ppo", {"network": {"actor": {"type": "module", "module": "os:path"}}})
