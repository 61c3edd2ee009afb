"""The perceptrons of world models: layers with RMS normalisation and SiLU, in torch and as ops of a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from rl4sys.networks import TensorMap
from rl4sys.networks.normed_layer import EPSILON, normed_layer
from rl4sys.policy import ProgramBuilder, Tensor

Write = Callable[[ProgramBuilder, str], str]


@dataclass(frozen=True, slots=True)
class NormedLayer:
    """One layer: linear, RMS normalisation, SiLU."""

    name: str
    inputs: int
    units: int

    def tensors(self) -> tuple[Tensor, ...]:
        """What it trains."""
        parts = ("weight", (self.inputs, self.units)), ("bias", (self.units,)), ("gain", (self.units,))
        return tuple(Tensor(f"{self.name}.{part}", shape) for part, shape in parts)

    def __call__(self, views: TensorMap, x: torch.Tensor) -> torch.Tensor:
        """Rows [N, inputs] to rows [N, units]."""
        return normed_layer(x, *(views[f"{self.name}.{part}"] for part in ("weight", "bias", "gain")))

    def write(self, builder: ProgramBuilder, register: str) -> str:
        """The same as ops."""
        return write_normed(builder, builder.linear(register, self.units, self.name), self.name)


def write_normed(builder: ProgramBuilder, register: str, name: str) -> str:
    """RMS normalisation with the gain `NAME.gain`, and SiLU, as ops."""
    (size,) = builder.shape(register)
    gain = builder.tensor(f"{name}.gain", size)
    return builder.activation(builder.op("rms_norm", (register,), (size,), (gain,), epsilon=EPSILON), "silu")


@dataclass(frozen=True, slots=True)
class NormedMlp:
    """Layers of equal width, and a plain linear one at the end if `outputs` is given."""

    name: str
    inputs: int
    units: int
    layers: int
    outputs: int | None = None

    @property
    def size(self) -> int:
        """Numbers in a result."""
        return self.outputs or (self.units if self.layers else self.inputs)

    def hidden(self) -> list[NormedLayer]:
        """The layers before the last."""
        widths = [self.inputs] + [self.units] * self.layers
        return [NormedLayer(f"{self.name}.{n}", widths[n], self.units) for n in range(self.layers)]

    def tensors(self) -> tuple[Tensor, ...]:
        """What it trains."""
        found = tuple(tensor for layer in self.hidden() for tensor in layer.tensors())
        if self.outputs is None:
            return found
        last = self.units if self.layers else self.inputs
        return (
            *found,
            Tensor(f"{self.name}.out.weight", (last, self.outputs)),
            Tensor(f"{self.name}.out.bias", (self.outputs,)),
        )

    def __call__(self, views: TensorMap, x: torch.Tensor) -> torch.Tensor:
        """Rows [N, inputs] to rows [N, size]."""
        for layer in self.hidden():
            x = layer(views, x)
        if self.outputs is None:
            return x
        return torch.addmm(views[f"{self.name}.out.bias"], x, views[f"{self.name}.out.weight"])

    def write(self, builder: ProgramBuilder, register: str) -> str:
        """The same as ops."""
        for layer in self.hidden():
            register = layer.write(builder, register)
        return register if self.outputs is None else builder.linear(register, self.outputs, f"{self.name}.out")
