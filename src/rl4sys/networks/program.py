"""Runs a policy program in torch, so that what is trained is exactly what travels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from rl4sys.networks.attention import attention
from rl4sys.networks.candidate_functions import ACTIVATIONS, candidate_linear, candidate_pool
from rl4sys.networks.group_functions import gate, grouped_linear, latent, softmax, symlog
from rl4sys.networks.local_module import torch_module
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.window_functions import conv1d, pool, reshape, slice_part
from rl4sys.policy import Op, PolicySpec, Program, UnknownOp
from rl4sys.policy.local_ops import TORCH_MODULE
from rl4sys.policy.policy_spec import number

TensorMap = Mapping[str, torch.Tensor]
Many = Sequence[torch.Tensor]
Function = Callable[[Op, Many, Many], tuple[torch.Tensor, ...]]


class TorchProgram(nn.Module):
    """A program over views of `Parameters`. Rows are independent; memory comes in and goes out as values."""

    def __init__(self, program: Program, parameters: Parameters) -> None:
        super().__init__()
        unknown = sorted({op.kind for op in program.ops} - FUNCTIONS.keys())
        if unknown:
            raise UnknownOp(f"Torch lacks the ops {unknown}; add them to rl4sys.networks.FUNCTIONS.")
        self.program = program
        self._steps = [(FUNCTIONS[op.kind], op, [parameters.views[name] for name in op.tensors]) for op in program.ops]

    def forward(self, observation: TensorMap, carry: TensorMap | None = None) -> dict[str, torch.Tensor]:
        """All registers, by name, after running the program on a batch of observations [N, …]."""
        registers = dict(observation)
        some = next(iter(observation.values()))
        for memory in self.program.carry:
            if carry is None:
                registers[memory.name] = torch.zeros(len(some), *memory.shape, device=some.device)
            else:
                registers[memory.name] = carry[memory.name]
        for function, op, tensors in self._steps:
            outputs = function(op, [registers[name] for name in op.inputs], tensors)
            if len(op.outputs) == 1:
                registers[op.outputs[0]] = outputs[0]
            else:
                registers |= zip(op.outputs, outputs, strict=True)
        return registers


def from_spec(spec: PolicySpec, device: torch.device | None = None) -> tuple[TorchProgram, Parameters]:
    """The torch module of a policy that came as a spec, with fresh (zero) parameters to load or set."""
    parameters = Parameters(spec.program.tensors, device or torch.device("cpu"))
    return TorchProgram(spec.program, parameters), parameters


def _linear(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    if len(tensors) == 1:
        return (inputs[0] @ tensors[0],)
    return (torch.addmm(tensors[1], inputs[0], tensors[0]),)


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    return lambda op, inputs, tensors: (function(inputs[0]),)


def _standardize(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    bound = _number(op, "clip")
    return (torch.clamp((inputs[0] - tensors[0]) * tensors[1], -bound, bound),)


def _layer_norm(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    gain, bias = tensors
    return (F.layer_norm(inputs[0], inputs[0].shape[-1:], gain, bias, _number(op, "epsilon")),)


def _rms_norm(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    return (F.rms_norm(inputs[0], inputs[0].shape[-1:], tensors[0], _number(op, "epsilon")),)


def _conv2d(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    kernel, bias = tensors
    # With the channels of a pixel side by side in memory torch takes 0.7 times as long. What `channels_first` returns,
    # and what this returns, has them so already.
    image = inputs[0].contiguous(memory_format=torch.channels_last)
    return (F.conv2d(image, kernel, bias, int(_number(op, "stride")), int(_number(op, "padding"))),)


def _channels_first(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    return (inputs[0].to(torch.float32).permute(0, 3, 1, 2),)


def _scale(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    factor, offset = _number(op, "factor"), _number(op, "offset")
    x = inputs[0].to(torch.float32)
    # The conversion made a copy, so it is scaled in place: images are large.
    scaled = x * factor if x is inputs[0] else x.mul_(factor)
    return (scaled + offset if offset else scaled,)


def _gru(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    (x, hidden), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    input_reset, input_update, input_new = torch.addmm(input_bias, x, input_weight).chunk(3, dim=-1)
    hidden_reset, hidden_update, hidden_new = torch.addmm(hidden_bias, hidden, hidden_weight).chunk(3, dim=-1)
    reset, update = torch.sigmoid(input_reset + hidden_reset), torch.sigmoid(input_update + hidden_update)
    new = torch.tanh(input_new + reset * hidden_new)
    return ((1.0 - update) * new + update * hidden,)


def _lstm(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    (x, hidden, cell), (input_weight, hidden_weight, input_bias, hidden_bias) = inputs, tensors
    total = torch.addmm(input_bias, x, input_weight) + torch.addmm(hidden_bias, hidden, hidden_weight)
    enter, forget, candidate, leave = total.chunk(4, dim=-1)
    next_cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(candidate)
    return torch.sigmoid(leave) * torch.tanh(next_cell), next_cell


def _embed(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    return (F.embedding(inputs[0].long(), tensors[0]).reshape(len(inputs[0]), -1),)


def _number(op: Op, name: str) -> float:
    return number(op.settings, name, f"op '{op.kind}'")


FUNCTIONS: dict[str, Function] = {
    "linear": _linear,
    **{kind: _unary(activate) for kind, activate in ACTIVATIONS.items()},
    "leaky_relu": lambda op, inputs, tensors: (F.leaky_relu(inputs[0], _number(op, "slope")),),
    "standardize": _standardize,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "channels_first": _channels_first,
    "conv2d": _conv2d,
    "flatten": lambda op, inputs, tensors: (inputs[0].flatten(1),),
    "concat": lambda op, inputs, tensors: (torch.cat(list(inputs), dim=1),),
    "add": lambda op, inputs, tensors: (inputs[0] + inputs[1],),
    "scale": _scale,
    "gru": _gru,
    "lstm": _lstm,
    "embed": _embed,
    "multiply": lambda op, inputs, tensors: (inputs[0] * inputs[1],),
    "symlog": _unary(symlog),
    "log": _unary(torch.log),
    "softmax": softmax,
    "grouped_linear": grouped_linear,
    "gate": gate,
    "latent": latent,
    "attention": attention,
    "candidate_linear": candidate_linear,
    "candidate_pool": candidate_pool,
    "conv1d": conv1d,
    "max_pool1d": partial(pool, F.max_pool1d),
    "max_pool2d": partial(pool, F.max_pool2d),
    "average_pool1d": partial(pool, F.avg_pool1d),
    "average_pool2d": partial(pool, F.avg_pool2d),
    "slice": slice_part,
    "reshape": reshape,
    TORCH_MODULE: torch_module,
}
"""The op set in torch, by the names that numpy and C++ know, and modules of the user's own, which only torch knows."""
