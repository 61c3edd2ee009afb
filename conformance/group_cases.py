"""Cases of the ops over groups of numbers, of latents and attention, and of chance; expected values by other means."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
import torch.nn.functional as F
from vectors import Array, Case

from rl4sys.experience import ArraySpec
from rl4sys.policy import Chance, ProgramBuilder

WINDOW = 5
Tensors = Mapping[str, torch.Tensor]
Expect = Callable[[Tensors, Tensors], dict[str, torch.Tensor]]
"""From inputs (observation, carry and chance) and weights, by name, to `action` and `next_carry.NAME`."""
MakeCase = Callable[[str, ProgramBuilder, str, Expect], Case]


def group_cases(case: MakeCase) -> Iterator[Case]:
    """The cases, made by this function."""
    yield from _elementwise(case)
    yield from _log(case)
    yield from _softmax(case)
    yield from _grouped(case)
    yield from _latents(case)
    yield _attention(case)
    yield _chance(case)


def drawn(chance: tuple[Chance, ...], noise: Array) -> dict[str, torch.Tensor]:
    """The chance registers, from uniform numbers [N, k] in their order."""
    registers, rest = {}, torch.from_numpy(noise).double()
    for one in chance:
        if one.distribution == "uniform":
            numbers, rest = rest[:, : one.size], rest[:, one.size :]
        else:
            pairs, rest = rest[:, : 2 * one.size].unflatten(1, (one.size, 2)), rest[:, 2 * one.size :]
            radius, angle = torch.sqrt(-2.0 * torch.log(1.0 - pairs[..., 0])), 2.0 * math.pi * pairs[..., 1]
            numbers = radius * torch.cos(angle)
        registers[one.name] = numbers.float()
    return registers


def _elementwise(case: MakeCase) -> Iterator[Case]:
    builder = _builder(x=4, y=4)
    yield case("multiply", builder, builder.multiply("x", "y"), lambda i, w: {"action": torch.mul(i["x"], i["y"])})
    builder = _builder(x=4)
    yield case(
        "symlog",
        builder,
        builder.symlog("x"),
        lambda i, w: {"action": torch.copysign(torch.log(1.0 + i["x"].double().abs()), i["x"]).float()},
    )


def _log(case: MakeCase) -> Iterator[Case]:
    builder = _builder(x=4)
    yield case(
        "log",
        builder,
        builder.log(builder.op("scale", (builder.softmax("x"),), (4,), factor=0.99, offset=0.0025)),
        lambda i, w: {"action": torch.log(0.99 * F.softmax(i["x"].double(), dim=1) + 0.0025).float()},
    )


def _softmax(case: MakeCase) -> Iterator[Case]:
    for name, groups in (("softmax", 1), ("softmax_groups", 3)):
        builder = _builder(x=6)

        def expect(inputs: Tensors, weights: Tensors, groups: int = groups) -> dict[str, torch.Tensor]:
            return {"action": torch.cat([F.softmax(part, dim=1) for part in inputs["x"].chunk(groups, dim=1)], dim=1)}

        yield case(name, builder, builder.softmax("x", groups), expect)


def _grouped(case: MakeCase) -> Iterator[Case]:
    builder = _builder(x=6)
    yield case(
        "grouped_linear",
        builder,
        builder.grouped_linear("x", 15, 3, "l"),
        lambda i, w: {"action": i["x"] @ torch.block_diag(*w["l.weight"]) + w["l.bias"]},
    )
    for name, groups, bias in (("gate", 1, -1.0), ("gate_groups", 2, 0.5)):
        builder = _builder(x=18)
        builder.memory("h", (6,), "r0")

        def expect(inputs: Tensors, weights: Tensors, groups: int = groups, bias: float = bias) -> dict:
            states = []
            for x, state in zip(inputs["x"].chunk(groups, 1), inputs["h"].chunk(groups, 1), strict=True):
                reset, candidate, update = x.split(6 // groups, dim=1)
                share = torch.sigmoid(update + bias)
                states.append(torch.lerp(state, torch.tanh(torch.sigmoid(reset) * candidate), share))
            return {"action": torch.cat(states, 1), "next_carry.h": torch.cat(states, 1)}

        yield case(name, builder, builder.gate("x", "h", groups, bias), expect)


def _latents(case: MakeCase) -> Iterator[Case]:
    """The logits are observations, so every runtime sees the same and must draw the same."""
    for name, groups, unimix in (("latent", 3, 0.01), ("latent_without_unimix", 2, 0.0)):
        builder = _builder(x=12)

        def expect(inputs: Tensors, weights: Tensors, groups: int = groups, unimix: float = unimix) -> dict:
            logits = inputs["x"].double().unflatten(1, (groups, -1))
            return {"action": sampled(logits, inputs["u"], unimix).flatten(1)}

        uniform = builder.chance("u", groups, "uniform")
        yield case(name, builder, builder.latent("x", groups, uniform, unimix=unimix), expect)
    builder = _builder(x=12)
    yield case(
        "latent_best",
        builder,
        builder.latent("x", 3),
        lambda i, w: {"action": F.one_hot(i["x"].unflatten(1, (3, 4)).argmax(2), 4).flatten(1).float()},
    )


def sampled(logits: torch.Tensor, uniform: torch.Tensor, unimix: float) -> torch.Tensor:
    """One-hot draws [N, groups, classes] from float64 logits, far enough from every boundary to be certain."""
    probability = (1.0 - unimix) * torch.softmax(logits, dim=2) + unimix / logits.shape[2]
    cumulative = probability.cumsum(2)[..., :-1]
    threshold = uniform.double().unsqueeze(2)
    margin = (cumulative - threshold).abs().min().item()
    if margin < 1e-9:
        raise ValueError(f"A draw is {margin} from the next class, so rounding could change it. Use another seed.")
    return F.one_hot(
        torch.searchsorted(cumulative.contiguous(), threshold, right=True)[..., 0], logits.shape[2]
    ).float()


def _attention(case: MakeCase) -> Case:
    """Row by row, with the rows of the ring in the order of their age."""
    # Of two axes, so that they have no extreme values, whose products lose digits.
    inputs = tuple(ArraySpec(name, "float32", (1, 6)) for name in "qkv")
    builder = ProgramBuilder(inputs)
    query, key, value = (builder.flat(spec.name) for spec in inputs)

    def expect(inputs: Tensors, weights: Tensors) -> dict[str, torch.Tensor]:
        keys, values, counts = (inputs[f"a.{part}"].clone() for part in ("keys", "values", "count"))
        results = []
        for row, count in enumerate(counts[:, 0].int().tolist()):
            keys[row, count % WINDOW], values[row, count % WINDOW] = inputs["k"][row, 0], inputs["v"][row, 0]
            places = [(count - age) % WINDOW for age in range(min(count + 1, WINDOW))]
            heads = (array.double().unflatten(-1, (2, 3)).transpose(0, 1) for array in (keys[row], values[row]))
            seen_keys, seen_values = (array[:, places] for array in heads)
            query = inputs["q"][row, 0].double().view(2, 1, 3)
            bias = weights["a.bias"].double()[:, None, : len(places)]
            results.append(F.scaled_dot_product_attention(query, seen_keys, seen_values, attn_mask=bias).flatten())
        following = (counts + 1.0) - WINDOW * (counts + 1.0 == 2 * WINDOW)
        return {
            "action": torch.stack(results).float(),
            "next_carry.a.keys": keys,
            "next_carry.a.values": values,
            "next_carry.a.count": following,
        }

    return case("attention", builder, builder.attention(query, key, value, heads=2, window=WINDOW, name="a"), expect)


def _chance(case: MakeCase) -> Case:
    builder = _builder(x=2)
    parts = ["x", builder.chance("z", 2, "normal"), builder.chance("u", 3, "uniform"), builder.chance("y", 1, "normal")]
    return case(
        "chance",
        builder,
        builder.joined(parts),
        lambda i, w: {"action": torch.cat([i[name] for name in ("x", "z", "u", "y")], dim=1)},
    )


def _builder(**sizes: int) -> ProgramBuilder:
    return ProgramBuilder(tuple(ArraySpec(name, "float32", (size,)) for name, size in sizes.items()))


def uniform_numbers(rng: np.random.RandomState, *shape: int) -> Array:
    """As noise has them: 24 bits."""
    return (rng.randint(0, 2**24, shape) / 2.0**24).astype(np.float32)
