"""Convolutional networks for image observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from rl4sys.experience import ArraySpec
from rl4sys.networks.config import Activation, MlpConfig, NetworkConfig, UnsuitableNetwork, register_network
from rl4sys.policy import ProgramBuilder

_IMPALA: Mapping[str, Any] = {
    "filters": (16, 32, 32),
    "kernels": (3, 3, 3),
    "strides": (2, 2, 2),
    "padding": 1,
    "residual_blocks": 2,
    "hidden_dims": (256,),
}


@register_network("cnn")
class CnnConfig(NetworkConfig):
    """Convolutions over each image, then fully connected layers over their results and all other observations."""

    preset: Literal["nature", "impala"] = "nature"
    """What the other settings are unless they are given: the encoder of deep Q-learning on Atari
    (doi:10.1038/nature14236), or the deeper residual one of IMPALA (arXiv:1802.01561), with convolutions of stride 2
    instead of pooling. The latter learns more from the same images, and takes several times as long."""
    filters: tuple[Annotated[int, Field(ge=1)], ...] = Field((32, 64, 64), min_length=1)
    """Filters of each convolution. More can distinguish more, and take longer per decision and update."""
    kernels: tuple[Annotated[int, Field(ge=1, le=64)], ...] = (8, 4, 3)
    """Height and width of the filters of each convolution, in pixels. Larger ones see more at once."""
    strides: tuple[Annotated[int, Field(ge=1, le=64)], ...] = (4, 2, 1)
    """Pixels that the filters of each convolution move at a time. More are cheaper and coarser."""
    padding: int = Field(0, ge=0, le=32)
    """Zero padding around the image before each convolution, in pixels per side. More allows smaller images."""
    residual_blocks: int = Field(0, ge=0, le=16)
    """Residual blocks of two 3 × 3 convolutions after each convolution. More are deeper and slower."""
    channels: Literal["last", "first"] = "last"
    """Whether images are [height, width, channels] or [channels, height, width]."""
    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = (512,)
    """Units of each fully connected layer that follows."""
    activation: Activation = "relu"
    """The activation after each convolution and each layer; before each convolution of residual blocks."""

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("preset") == "impala":
            return {**_IMPALA, **values}
        return values

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        counts = len(self.filters), len(self.kernels), len(self.strides)
        if len(set(counts)) > 1:
            raise ValueError(
                "filters, kernels and strides have {} entries, {} and {}; give each one for every convolution".format(
                    *counts
                )
            )
        return self

    def features(self, builder: ProgramBuilder, name: str, *, standardize: bool) -> str:
        """Each image through its own convolutions, concatenated with all other observations."""
        seen = builder.observations()
        if not any(_is_image(spec) for spec in seen):
            raise UnsuitableNetwork(
                f"network.{name} is of type cnn, but none of {', '.join(map(str, seen))} is an image, which has three "
                f"axes. Use type: mlp, or observe images, such as environment.pixels={{size: 84}}."
            )
        parts = []
        for spec in seen:
            register = builder.numbers(spec, standardize=standardize)
            if _is_image(spec):
                register = self._convolved(builder, spec, register, name)
            parts.append(builder.flat(register))
        return builder.joined(parts)

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The fully connected layers."""
        kernels = [tensor.name for tensor in builder.program().tensors if len(tensor.shape) == 4]
        if not any(kernel.startswith(f"{name}.") for kernel in kernels):
            raise UnsuitableNetwork(
                f"network.{name} is of type cnn, but this algorithm flattens images before the network. "
                f"Start with network.features(builder, {name!r}, standardize=…), or use type: mlp."
            )
        return MlpConfig(hidden_dims=self.hidden_dims, activation=self.activation).body(builder, features, name)

    def _convolved(self, builder: ProgramBuilder, spec: ArraySpec, register: str, name: str) -> str:
        if self.channels == "last":
            register = builder.channels_first(register)
        _, height, width = builder.shape(register)
        least = self._least_size()
        if min(height, width) < least:
            raise UnsuitableNetwork(
                f"Observation '{spec.name}' is {height} pixels high and {width} wide; the convolutions of "
                f"network.{name} need at least {least} × {least}. Observe larger images (environment.pixels.size), "
                f"choose smaller kernels and strides, or say where the channels are (network.{name}.channels, here "
                f"{self.channels})."
            )
        layers = zip(self.filters, self.kernels, self.strides, strict=True)
        for number, (filters, kernel, stride) in enumerate(layers):
            layer = f"{name}.{spec.name}.{number}"
            register = builder.conv2d(register, filters, kernel, layer, stride=stride, padding=self.padding)
            for block in range(self.residual_blocks):
                register = self._residual(builder, register, f"{layer}.{block}")
            if not self.residual_blocks or number == len(self.filters) - 1:
                register = builder.activation(register, self.activation)
        return register

    def _residual(self, builder: ProgramBuilder, register: str, name: str) -> str:
        """x + conv(f(conv(f(x))))."""
        filters = builder.shape(register)[0]
        inner = register
        for number in range(2):
            inner = builder.activation(inner, self.activation)
            inner = builder.conv2d(inner, filters, 3, f"{name}.{number}", padding=1)
        return builder.op("add", (register, inner), builder.shape(register))

    def _least_size(self) -> int:
        """The smallest height or width for which the last convolution still yields one pixel."""
        size = 1
        for kernel, stride in zip(reversed(self.kernels), reversed(self.strides), strict=True):
            size = max(1, (size - 1) * stride + kernel - 2 * self.padding)
        return size


def _is_image(spec: ArraySpec) -> bool:
    return len(spec.shape) == 3
