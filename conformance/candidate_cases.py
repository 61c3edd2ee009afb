"""Cases of the ops over candidates, and of heads that choose among them; expected values by other means."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from group_cases import Expect, Tensors
from vectors import Array, Case

from rl4sys.experience import ArraySpec
from rl4sys.policy import CANDIDATES, COUNT, ProgramBuilder, candidate_arrays

MOST, FEATURES = 5, 3
MakeCase = Callable[[str, ProgramBuilder, str, Expect], Case]
_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda x: x,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "elu": F.elu,
    "softplus": F.softplus,
}


def candidate_counts(name: str, rows: int, most: int) -> Array:
    """How many candidates each row has: from none to all."""
    return np.random.RandomState(zlib.crc32(name.encode())).randint(0, most + 1, (rows, 1)).astype(np.float32)


def candidate_cases(case: MakeCase) -> Iterator[Case]:
    """The cases, made by this function."""
    for kind, function in _ACTIVATIONS.items():
        builder = ProgramBuilder(candidate_arrays(MOST, FEATURES))
        register = builder.candidate_linear(CANDIDATES, 2, "l", activation=kind)
        yield case(f"candidate_linear_{kind}", builder, register, _layer(function))
    yield _network(case)
    builder = ProgramBuilder(candidate_arrays(MOST, FEATURES))
    yield case("candidate_pool", builder, builder.candidate_pool(CANDIDATES), _pool)


def _layer(function: Callable[[torch.Tensor], torch.Tensor]) -> Expect:
    def expect(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        results = torch.zeros(len(inputs[COUNT]), MOST, 2)
        for row, count in enumerate(inputs[COUNT].int().flatten().tolist()):
            real = inputs[CANDIDATES][row, :count]
            results[row, :count] = function(F.linear(real, weights["l.weight"].T, weights["l.bias"]))
        return {"action": results.flatten(1)}

    return expect


def _pool(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
    results = torch.zeros(len(inputs[COUNT]), 2 * FEATURES + 1)
    for row, count in enumerate(inputs[COUNT].int().flatten().tolist()):
        if count:
            real = inputs[CANDIDATES][row, :count]
            parts = real.mean(0), real.max(0).values, torch.tensor([float(count)]).log()
            results[row] = torch.cat(parts)
    return {"action": results}


def _network(case: MakeCase) -> Case:
    """Two layers with a context, their scores and their pooled rows side by side."""
    context = ArraySpec("context", "float32", (2,))
    builder = ProgramBuilder((*candidate_arrays(MOST, FEATURES), context))
    register = builder.candidate_linear(CANDIDATES, 6, "a", context="context", activation="tanh")
    register = builder.candidate_linear(register, 4, "b", activation="relu")
    scores = builder.flat(builder.candidate_linear(register, 1, "c"))

    def expect(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        results = torch.zeros(len(inputs[COUNT]), MOST + 9)
        for row, count in enumerate(inputs[COUNT].int().flatten().tolist()):
            if count == 0:
                continue
            beside = inputs["context"][row].expand(count, -1)
            x = torch.cat([inputs[CANDIDATES][row, :count], beside], 1)
            x = torch.tanh(F.linear(x, weights["a.weight"].T, weights["a.bias"]))
            x = torch.relu(F.linear(x, weights["b.weight"].T, weights["b.bias"]))
            results[row, :count] = F.linear(x, weights["c.weight"].T, weights["c.bias"])[:, 0]
            results[row, MOST:] = torch.cat([x.mean(0), x.max(0).values, torch.tensor([float(count)]).log()])
        return {"action": results}

    return case("candidate_network", builder, builder.joined([scores, builder.candidate_pool(register)]), expect)
