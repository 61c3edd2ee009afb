"""A user's `nn.Module` without counterpart in known ops, as one op that trains and acts with torch in this process."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from rl4sys.config.plugins import imported_module
from rl4sys.experience import Array
from rl4sys.networks.config import UnsuitableNetwork
from rl4sys.networks.parameters import Parameters
from rl4sys.policy import Op, Program, ProgramBuilder
from rl4sys.policy.compiled_op import Compiled, buffer
from rl4sys.policy.local_ops import LOCAL_COMPILERS, TORCH_MODULE
from rl4sys.policy.policy_spec import number

_OWN = ".own"
"""Ends the names of its tensors, which the module itself initialises."""
_ROWS, _TOLERANCE = 4, 1e-4


def made_module(name: str, inputs: int, kwargs: Mapping[str, Any], seed: int = 0) -> nn.Module:
    """A new module `python_module:Class` for so many inputs; what it draws depends on the seed only."""
    place, _, attribute = name.partition(":")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = getattr(imported_module(place), attribute)(inputs, **kwargs)
    if not isinstance(module, nn.Module):
        raise TypeError(f"it made {module!r:.60}, which is not an nn.Module")
    return module.eval()


def write_local_module(
    builder: ProgramBuilder, features: str, name: str, module: str, kwargs: Mapping[str, Any], reason: str
) -> str:
    """Add the module as one op; refuses one that is more than a function of its weights and of one row."""
    (inputs,) = builder.shape(features)
    example = made_module(module, inputs, kwargs)
    size = _checked_size(example, inputs, f"network.{name}.module: {module}")
    tensors = tuple(
        builder.tensor(f"{name}.module.{part}{_OWN}", *parameter.shape)
        for part, parameter in example.named_parameters()
    )
    text = json.dumps(kwargs, sort_keys=True)
    return builder.op(
        TORCH_MODULE, (features,), (size,), tensors, module=module, kwargs=text, width=inputs, reason=reason
    )


def initialize_modules(programs: Sequence[Program], parameters: Parameters, generator: torch.Generator) -> None:
    """Give the tensors of such modules the values with which the modules begin."""
    for op in (op for program in programs for op in program.ops if op.kind == TORCH_MODULE):
        seed = int(torch.randint(2**31, (), generator=generator))
        made = made_module(str(op.settings["module"]), *_arguments(op), seed)
        for tensor, value in zip(op.tensors, made.parameters(), strict=True):
            parameters.set(tensor, value.detach())


def torch_module(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """The module with these tensors as its parameters."""
    module = _shared(str(op.settings["module"]), _arguments(op)[0], str(op.settings["kwargs"]), inputs[0].device)
    names = (name for name, _ in module.named_parameters())
    result: torch.Tensor = functional_call(module, dict(zip(names, tensors, strict=True)), (inputs[0],))
    return (result,)


def _compile(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """The same over the memory of numpy arrays."""
    weights = [torch.from_numpy(tensor) for tensor in tensors]
    (x,) = inputs
    size = torch_module(op, [torch.zeros(1, x.shape[1])], weights)[0].shape[1]
    out = buffer((len(x), size))

    def run() -> None:
        with torch.no_grad():
            np.copyto(out, torch_module(op, [torch.from_numpy(x)], weights)[0].numpy())

    return Compiled((out,), (run,))


LOCAL_COMPILERS[TORCH_MODULE] = _compile


def _arguments(op: Op) -> tuple[int, dict[str, Any]]:
    return int(number(op.settings, "width", f"op '{op.kind}'")), json.loads(str(op.settings["kwargs"]))


@functools.lru_cache(maxsize=16)
def _shared(module: str, inputs: int, kwargs: str, device: torch.device) -> nn.Module:
    """One module for all calls, since its parameters are arguments; its buffers are those of seed 0 everywhere."""
    return made_module(module, inputs, json.loads(kwargs)).to(device)


def _checked_size(module: nn.Module, inputs: int, place: str) -> int:
    """How many numbers the module makes of a row."""
    rows = torch.randn(_ROWS, inputs, generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in module.named_buffers()}
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            module.train()
            result, again = module(rows), module(rows)
            alone = module.eval()(rows[:1])
    except Exception as error:  # whatever a user's module raises
        raise UnsuitableNetwork(f"{place} cannot run on {inputs} numbers: {error}") from error
    if not isinstance(result, torch.Tensor) or result.ndim != 2 or len(result) != _ROWS:
        shape = tuple(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
        raise UnsuitableNetwork(f"{place} returns {shape} for {_ROWS} rows; expected a vector for each row.")
    if changed := [name for name, value in module.named_buffers() if not torch.equal(value, before[name])]:
        raise UnsuitableNetwork(
            f"{place} changes its buffers {changed} while it runs, which no checkpoint would hold; use LayerNorm in "
            f"place of BatchNorm, and `track_running_stats=False` elsewhere."
        )
    if not torch.equal(result, again):
        raise UnsuitableNetwork(
            f"{place} gives different results for the same rows; leave out dropout and other noise."
        )
    if not torch.allclose(result[:1], alone, atol=_TOLERANCE, rtol=_TOLERANCE):
        raise UnsuitableNetwork(f"{place} mixes the rows of a batch, which are independent observations.")
    return int(result.shape[1])
