"""Observations to embeddings, and features back to observations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from rl4sys.dynamics.normed_mlp import NormedMlp
from rl4sys.experience import ArraySpec
from rl4sys.networks import TensorMap, UnsuitableNetwork
from rl4sys.networks.two_hot import symlog
from rl4sys.policy import ProgramBuilder, Tensor

_KERNEL, _STRIDE, _PADDING, _HALVINGS = 4, 2, 1, 4


def images_and_vectors(observation: tuple[ArraySpec, ...]) -> tuple[list[ArraySpec], list[ArraySpec]]:
    """Observations that are images [height, width, channels], and all others."""
    images = [spec for spec in observation if len(spec.shape) == 3 and spec.dtype == "uint8"]
    return images, [spec for spec in observation if spec not in images]


def require_sizes(observation: tuple[ArraySpec, ...]) -> None:
    """Refuse images that cannot be halved four times."""
    for spec in images_and_vectors(observation)[0]:
        if any(length % 2**_HALVINGS for length in spec.shape[:2]):
            raise UnsuitableNetwork(
                f"Observation '{spec.name}' is {spec.shape[0]} × {spec.shape[1]} pixels; a world model needs multiples "
                f"of {2**_HALVINGS}. Set environment.pixels.size=64."
            )


def _vector(observation: TensorMap, specs: list[ArraySpec]) -> torch.Tensor:
    """All vectors of an observation [N, …] side by side, compressed by symlog."""
    parts = [_numbers(observation[spec.name], spec).flatten(1) for spec in specs]
    return symlog(torch.cat(parts, -1) if len(parts) > 1 else parts[0])


def _numbers(array: torch.Tensor, spec: ArraySpec) -> torch.Tensor:
    return array.to(torch.float32) / 255.0 if spec.dtype == "uint8" else array.to(torch.float32)


@dataclass(frozen=True, slots=True)
class Encoder:
    """A perceptron over symlog of all vectors, and convolutions over each image."""

    observation: tuple[ArraySpec, ...]
    units: int
    layers: int
    depth: int
    """Filters of the first convolution; each further one has twice as many."""

    @property
    def _mlp(self) -> NormedMlp:
        _, vectors = images_and_vectors(self.observation)
        return NormedMlp("encoder", sum(math.prod(spec.shape) for spec in vectors), self.units, self.layers)

    @property
    def size(self) -> int:
        """Numbers in an embedding."""
        images, vectors = images_and_vectors(self.observation)
        pixels = sum((spec.shape[0] >> _HALVINGS) * (spec.shape[1] >> _HALVINGS) for spec in images)
        return (self._mlp.size if vectors else 0) + pixels * self._filters(_HALVINGS - 1)

    def _filters(self, number: int) -> int:
        return self.depth << number

    def __call__(self, views: TensorMap, observation: TensorMap) -> torch.Tensor:
        """Embeddings [N, size] of observations [N, …]."""
        images, vectors = images_and_vectors(self.observation)
        parts = [self._mlp(views, _vector(observation, vectors))] if vectors else []
        for spec in images:
            x = _numbers(observation[spec.name], spec).permute(0, 3, 1, 2)
            for number in range(_HALVINGS):
                name = f"encoder.{spec.name}.{number}"
                x = F.silu(F.conv2d(x, views[f"{name}.weight"], views[f"{name}.bias"], _STRIDE, _PADDING))
            parts.append(x.flatten(1))
        return torch.cat(parts, -1) if len(parts) > 1 else parts[0]

    def write(self, builder: ProgramBuilder) -> str:
        """The same as ops; returns the register of the embedding."""
        images, vectors = images_and_vectors(self.observation)
        parts = []
        if vectors:
            flat = builder.joined([builder.flat(builder.numbers(spec, standardize=False)) for spec in vectors])
            parts.append(self._mlp.write(builder, builder.symlog(flat)))
        for spec in images:
            register = builder.channels_first(builder.numbers(spec, standardize=False))
            for number in range(_HALVINGS):
                name, filters = f"encoder.{spec.name}.{number}", self._filters(number)
                register = builder.conv2d(register, filters, _KERNEL, name, stride=_STRIDE, padding=_PADDING)
                register = builder.activation(register, "silu")
            parts.append(builder.flat(register))
        return builder.joined(parts)


@dataclass(frozen=True, slots=True)
class Decoder:
    """Predicts vectors after symlog, and images from 0 to 1."""

    observation: tuple[ArraySpec, ...]
    feature: int
    units: int
    layers: int
    depth: int

    @property
    def _mlp(self) -> NormedMlp:
        _, vectors = images_and_vectors(self.observation)
        return NormedMlp("decoder", self.feature, self.units, self.layers, sum(math.prod(s.shape) for s in vectors))

    def tensors(self) -> tuple[Tensor, ...]:
        """What it trains."""
        images, vectors = images_and_vectors(self.observation)
        found = list(self._mlp.tensors()) if vectors else []
        for spec in images:
            height, width, channels = spec.shape
            size = height * width // 4**_HALVINGS * self._filters(0)
            found += [Tensor(f"decoder.{spec.name}.start.weight", (self.feature, size))]
            found += [Tensor(f"decoder.{spec.name}.start.bias", (size,))]
            for number in range(_HALVINGS):
                name, is_last = f"decoder.{spec.name}.{number}", number == _HALVINGS - 1
                outputs = channels if is_last else self._filters(number + 1)
                found += [Tensor(f"{name}.weight", (self._filters(number), outputs, _KERNEL, _KERNEL))]
                found += [Tensor(f"{name}.bias", (outputs,))]
        return tuple(found)

    def _filters(self, number: int) -> int:
        return self.depth << (_HALVINGS - 1 - number)

    def loss(self, views: TensorMap, feature: torch.Tensor, observation: TensorMap) -> torch.Tensor:
        """Squared errors [N], summed over all numbers and pixels."""
        images, vectors = images_and_vectors(self.observation)
        loss = torch.zeros(len(feature), device=feature.device)
        if vectors:
            loss = loss + (self._mlp(views, feature) - _vector(observation, vectors)).square().sum(-1)
        for spec in images:
            target = _numbers(observation[spec.name], spec).permute(0, 3, 1, 2)
            loss = loss + (self._image(views, feature, spec) - target).square().sum((1, 2, 3))
        return loss

    def vectors(self, views: TensorMap, feature: torch.Tensor) -> torch.Tensor:
        """Predicted vectors [N, d], side by side, after symlog."""
        return self._mlp(views, feature)

    def _image(self, views: TensorMap, feature: torch.Tensor, spec: ArraySpec) -> torch.Tensor:
        height, width, _ = spec.shape
        name = f"decoder.{spec.name}"
        x = torch.addmm(views[f"{name}.start.bias"], feature, views[f"{name}.start.weight"])
        x = F.silu(x.view(-1, self._filters(0), height >> _HALVINGS, width >> _HALVINGS))
        for number in range(_HALVINGS):
            weight, bias = views[f"{name}.{number}.weight"], views[f"{name}.{number}.bias"]
            x = F.conv_transpose2d(x, weight, bias, _STRIDE, _PADDING)
            x = F.silu(x) if number < _HALVINGS - 1 else torch.sigmoid(x)
        return x
