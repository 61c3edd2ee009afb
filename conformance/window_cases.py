"""Cases of convolution and pooling over windows, of slices and shapes, and of traced modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from group_cases import Expect, MakeCase, Tensors
from torch import nn
from vectors import Case

from rl4sys.experience import ArraySpec
from rl4sys.networks.traced_module import write_module
from rl4sys.policy import ProgramBuilder


def window_cases(case: MakeCase) -> Iterator[Case]:
    """The cases, made by this function."""
    for name, stride, padding in (("conv1d", 1, 0), ("conv1d_stride_padding", 2, 2)):
        builder = _builder(2, 7)
        register = builder.conv1d("x", 3, 3, "c", stride=stride, padding=padding)
        yield case(name, builder, register, _convolved(stride, padding))
    for kernel, stride, padding in ((2, 2, 0), (3, 2, 1)):
        yield from _pools(case, (2, 7), kernel, stride, padding, {"max": F.max_pool1d, "average": F.avg_pool1d})
        yield from _pools(case, (2, 5, 6), kernel, stride, padding, {"max": F.max_pool2d, "average": F.avg_pool2d})
    yield from _parts(case)
    yield from _modules(case)


def _convolved(stride: int, padding: int) -> Expect:
    return lambda i, w: {"action": F.conv1d(i["x"], w["c.kernel"], w["c.bias"], stride, padding).flatten(1)}


def _pools(
    case: MakeCase,
    shape: tuple[int, ...],
    kernel: int,
    stride: int,
    padding: int,
    functions: dict[str, Callable[..., torch.Tensor]],
) -> Iterator[Case]:
    for kind, function in functions.items():
        builder = _builder(*shape)
        pool = builder.max_pool if kind == "max" else builder.average_pool
        register = pool("x", kernel, stride=stride, padding=padding)

        def expect(inputs: Tensors, weights: Tensors, function: Callable[..., torch.Tensor] = function) -> dict:
            return {"action": function(inputs["x"], kernel, stride, padding).flatten(1)}

        name = f"{kind}_pool{len(shape) - 1}d"
        yield case(name if padding == 0 else f"{name}_padding", builder, register, expect)


def _parts(case: MakeCase) -> Iterator[Case]:
    builder = _builder(6)
    yield case("slice", builder, builder.slice("x", 1, 4), lambda i, w: {"action": i["x"][:, 1:4]})
    builder = _builder(2, 3, 4)
    part = builder.slice(builder.slice("x", 1, 3, axis=1), 0, 3, axis=2)
    yield case("slice_axes", builder, part, lambda i, w: {"action": i["x"][:, :, 1:3, 0:3].flatten(1)})
    builder = ProgramBuilder((ArraySpec("x", "uint8", (6,)),))
    yield case(
        "reshape_uint8",
        builder,
        builder.channels_first(builder.reshape("x", (1, 3, 2))),
        lambda i, w: {"action": i["x"].float().unflatten(1, (1, 3, 2)).movedim(3, 1).flatten(1)},
    )


class Gated(nn.Module):
    """A skip connection, a gate, a norm and a part of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.SiLU())
        self.gate = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        left, right = (2.0 * hidden - hidden * self.gate(x[:, 2:]).sigmoid()).split(3, dim=-1)
        return torch.cat([left, F.leaky_relu(right, 0.2), torch.softmax(hidden, dim=-1)], dim=-1)


class Windows(nn.Module):
    """Convolutions over a history of observations, and over it as an image."""

    def __init__(self) -> None:
        super().__init__()
        self.history = nn.Sequential(
            nn.Unflatten(1, (2, 12)), nn.Conv1d(2, 3, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2)
        )
        self.image = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ELU(), nn.AvgPool2d(2))
        self.last = nn.Linear(3 + 4 + 12, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        history = self.history(x)
        image = self.image(x.view(x.shape[0], 1, 4, 6))
        return self.last(
            torch.cat([history.mean(-1), image.amax(dim=(2, 3)), x.reshape(-1, 2, 12)[:, 1:].flatten(1)], dim=-1)
        )


def _modules(case: MakeCase) -> Iterator[Case]:
    for name, module, inputs in (("traced_gated", Gated(), 6), ("traced_windows", Windows(), 24)):
        builder = _builder(inputs)

        def expect(inputs: Tensors, weights: Tensors, module: nn.Module = module) -> dict[str, torch.Tensor]:
            _load(module, weights)
            return {"action": module(inputs["x"])}

        yield case(name, builder, write_module(builder, "x", module, "actor"), expect)


def _load(module: nn.Module, weights: Tensors) -> None:
    """Give the module the program's weights; matrices are [in, out] there."""
    for name, layer in module.named_modules():
        tensors = {key.rpartition(".")[2]: value for key, value in weights.items() if key.startswith(_prefix(name))}
        match layer:
            case nn.Linear():
                layer.weight.copy_(tensors["weight"].T)
            case nn.LayerNorm():
                layer.weight.copy_(tensors["gain"])
            case nn.Conv1d():
                layer.weight.copy_(tensors["kernel"])
            case nn.Conv2d():
                layer.weight.copy_(tensors["weight"])
            case _:
                continue
        layer.bias.copy_(tensors["bias"])


def _prefix(name: str) -> str:
    return f"actor.module.{name}."


def _builder(*shape: int) -> ProgramBuilder:
    return ProgramBuilder((ArraySpec("x", "float32", shape),))
