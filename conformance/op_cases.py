"""One policy for each op: a deterministic head returns the result of the op as the action."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from candidate_cases import candidate_cases, candidate_counts
from group_cases import WINDOW, Expect, Tensors, drawn, group_cases, uniform_numbers
from vectors import Array, Case
from window_cases import window_cases

from rl4sys.experience import ArraySpec
from rl4sys.policy import CANDIDATES, COUNT, BoxAction, Head, Memory, PolicySpec, ProgramBuilder

ROWS = 64

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "elu": F.elu,
    "softplus": F.softplus,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
}
_EXTREMES = (-100.0, -30.0, -1.0, -1e-4, 0.0, 1e-4, 1.0, 30.0, 100.0)


def op_cases() -> Iterator[Case]:
    """Every op, with the settings that change what it computes."""
    yield from _dense()
    for kind, function in ACTIVATIONS.items():
        builder = _builder(("x", "float32", (4,)))
        yield _case(kind, builder, builder.activation("x", kind), lambda i, w, f=function: {"action": f(i["x"])})
    yield from _norms()
    yield from _images()
    yield from _shapes()
    yield from _recurrent()
    yield from _embeddings()
    yield from group_cases(_case)
    yield from candidate_cases(_case)
    yield from window_cases(_case)


def _dense() -> Iterator[Case]:
    builder = _builder(("x", "float32", (5,)))
    yield _case(
        "linear",
        builder,
        builder.linear("x", 3, "l"),
        lambda i, w: {"action": F.linear(i["x"], w["l.weight"].T, w["l.bias"])},
    )
    builder = _builder(("x", "float32", (5,)))
    product = builder.op("linear", ("x",), (3,), (builder.tensor("l.weight", 5, 3),))
    yield _case("linear_without_bias", builder, product, lambda i, w: {"action": F.linear(i["x"], w["l.weight"].T)})


def _norms() -> Iterator[Case]:
    builder = _builder(("x", "float32", (2, 3)))
    standardized = builder.features(standardize=True, clip=1.5)
    yield _case(
        "standardize",
        builder,
        standardized,
        lambda i, w: {"action": ((i["x"] - w["x.mean"]) * w["x.scale"]).clamp(-1.5, 1.5).flatten(1)},
    )
    builder = _builder(("x", "float32", (6,)))
    yield _case(
        "layer_norm",
        builder,
        builder.layer_norm("x", "n"),
        lambda i, w: {"action": F.layer_norm(i["x"], (6,), w["n.gain"], w["n.bias"], 1e-5)},
    )
    builder = _builder(("x", "float32", (6,)))
    normed = builder.op("rms_norm", ("x",), (6,), (builder.tensor("n.gain", 6),), epsilon=1e-6)
    yield _case("rms_norm", builder, normed, lambda i, w: {"action": F.rms_norm(i["x"], (6,), w["n.gain"], 1e-6)})


def _images() -> Iterator[Case]:
    for name, stride, padding in (("conv2d", 1, 0), ("conv2d_stride_padding", 2, 1)):
        builder = _builder(("x", "float32", (2, 5, 6)))
        tensors = builder.tensor("c.weight", 3, 2, 3, 2), builder.tensor("c.bias", 3)
        shape = (3, (5 + 2 * padding - 3) // stride + 1, (6 + 2 * padding - 2) // stride + 1)
        register = builder.op("conv2d", ("x",), shape, tensors, stride=stride, padding=padding)
        yield _case(
            name,
            builder,
            register,
            lambda i, w, stride=stride, padding=padding: {
                "action": F.conv2d(i["x"], w["c.weight"], w["c.bias"], stride, padding).flatten(1)
            },
        )
    for name, dtype in (("channels_first", "float32"), ("channels_first_uint8", "uint8")):
        builder = _builder(("x", dtype, (2, 3, 4)))
        yield _case(
            name,
            builder,
            builder.channels_first("x"),
            lambda i, w: {"action": i["x"].to(torch.float32).movedim(3, 1).flatten(1)},
        )
    yield _image_network()


def _image_network() -> Case:
    """The ops of a network for images."""
    builder = _builder(("x", "uint8", (8, 9, 3)))
    register = builder.channels_first(builder.numbers(ArraySpec("x", "uint8", (8, 9, 3)), standardize=False))
    for number, (filters, kernel, stride) in enumerate(((4, 3, 2), (5, 2, 1))):
        register = builder.conv2d(register, filters, kernel, f"c{number}", stride=stride, padding=number)
        register = builder.activation(register, "relu")

    def expect(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        x = inputs["x"].to(torch.float32).movedim(3, 1) / 255.0
        x = F.relu(F.conv2d(x, weights["c0.weight"], weights["c0.bias"], 2, 0))
        x = F.relu(F.conv2d(x, weights["c1.weight"], weights["c1.bias"], 1, 1)).flatten(1)
        return {"action": F.linear(x, weights["l.weight"].T, weights["l.bias"])}

    return _case("picture_network", builder, builder.linear(builder.flat(register), 3, "l"), expect)


def _shapes() -> Iterator[Case]:
    builder = _builder(("x", "float32", (2, 3)))
    yield _case("flatten", builder, builder.features(standardize=False), lambda i, w: {"action": i["x"].flatten(1)})
    builder = _builder(("x", "float32", (2,)), ("y", "float32", (3,)))
    yield _case(
        "concat",
        builder,
        builder.features(standardize=False),
        lambda i, w: {"action": torch.cat([i["x"], i["y"]], dim=1)},
    )
    builder = _builder(("x", "float32", (3,)), ("y", "float32", (3,)))
    yield _case("add", builder, builder.op("add", ("x", "y"), (3,)), lambda i, w: {"action": i["x"] + i["y"]})
    builder = _builder(("x", "float32", (3,)))
    scaled = builder.op("scale", ("x",), (3,), factor=0.75, offset=-0.5)
    yield _case("scale", builder, scaled, lambda i, w: {"action": i["x"] * 0.75 - 0.5})
    builder = _builder(("x", "uint8", (3,)))
    yield _case(
        "scale_uint8",
        builder,
        builder.features(standardize=False),
        lambda i, w: {"action": i["x"].to(torch.float32) / 255.0},
    )


def _recurrent() -> Iterator[Case]:
    builder = _builder(("x", "float32", (3,)))

    def gru(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        hidden = _cell(torch.nn.GRUCell(3, 4), weights)(inputs["x"], inputs["g.hidden"])
        return {"action": hidden, "next_carry.g.hidden": hidden}

    yield _case("gru", builder, builder.gru("x", 4, "g"), gru)
    builder = _builder(("x", "float32", (3,)))

    def lstm(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        memory = (inputs["g.hidden"], inputs["g.cell"])
        hidden, cell = _cell(torch.nn.LSTMCell(3, 4), weights)(inputs["x"], memory)
        return {"action": hidden, "next_carry.g.hidden": hidden, "next_carry.g.cell": cell}

    yield _case("lstm", builder, builder.lstm("x", 4, "g"), lstm)


def _cell(cell: torch.nn.GRUCell | torch.nn.LSTMCell, weights: Tensors) -> Callable[..., torch.Tensor]:
    """Torch's cell with weights that are stored [in, out]."""
    cell.weight_ih.copy_(weights["g.input_weight"].T)
    cell.weight_hh.copy_(weights["g.hidden_weight"].T)
    cell.bias_ih.copy_(weights["g.input_bias"])
    cell.bias_hh.copy_(weights["g.hidden_bias"])
    return cell


def _embeddings() -> Iterator[Case]:
    for name, shape in (("embed", ()), ("embed_many", (3,))):
        builder = _builder(("x", "int64", shape))
        register = builder.op("embed", ("x",), (2 * math.prod(shape),), (builder.tensor("table", 7, 2),))
        yield _case(name, builder, register, lambda i, w: {"action": F.embedding(i["x"], w["table"]).flatten(1)})


def _builder(*inputs: tuple[str, str, tuple[int, ...]]) -> ProgramBuilder:
    return ProgramBuilder(tuple(ArraySpec(*array) for array in inputs))


def _case(name: str, builder: ProgramBuilder, register: str, expect: Expect) -> Case:
    if len(builder.shape(register)) != 1:
        register = builder.op("flatten", (register,), (math.prod(builder.shape(register)),))
    program, size = builder.program(), builder.shape(register)[0]
    action = BoxAction((-math.inf,) * size, (math.inf,) * size)
    # The legacy generator: its streams never change, those of default_rng may.
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    inputs: dict[str, Array] = {spec.name: _input(rng, spec) for spec in program.inputs}
    if COUNT in inputs:
        inputs[COUNT] = candidate_counts(name, ROWS, inputs[CANDIDATES].shape[1])
    carry = {memory.name: _memory(rng, memory) for memory in program.carry}
    weights = {tensor.name: _uniform(rng, tensor.shape) for tensor in program.tensors}
    noise = uniform_numbers(rng, ROWS, program.uniform_numbers)
    with torch.no_grad():
        expected = expect(_torch(inputs | carry) | drawn(program.chance, noise), _torch(weights))
    arrays = {"weights": np.concatenate([np.zeros(0, np.float32), *(w.ravel() for w in weights.values())])}
    arrays |= {f"observation.{name}": array for name, array in inputs.items()}
    arrays |= {f"carry.{name}": array for name, array in carry.items()}
    arrays |= {"noise": noise}
    arrays |= {name: tensor.numpy() for name, tensor in expected.items()}
    return Case(name, PolicySpec(action, program, Head("deterministic", (register,))), arrays)


def _input(rng: np.random.RandomState, spec: ArraySpec) -> Array:
    shape = (ROWS, *spec.shape)
    if spec.dtype == "uint8":
        return rng.randint(0, 256, shape).astype(np.uint8)
    if spec.dtype == "int64":
        return rng.randint(0, 7, shape).astype(np.int64)
    values = 3.0 * _uniform(rng, shape)
    if len(spec.shape) == 1:
        values[: len(_EXTREMES), 0] = _EXTREMES
    return values


def _memory(rng: np.random.RandomState, memory: Memory) -> Array:
    """Numbers, and for the count of a ring a whole one below twice its window."""
    if memory.name.endswith(".count"):
        return rng.randint(0, 2 * WINDOW, (ROWS, 1)).astype(np.float32)
    return _uniform(rng, (ROWS, *memory.shape))


def _uniform(rng: np.random.RandomState, shape: tuple[int, ...]) -> Array:
    return rng.uniform(-1.0, 1.0, shape).astype(np.float32)


def _torch(arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
