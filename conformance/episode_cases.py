"""Policies with memory over whole episodes: each decision starts from the carry that the one before it left.

Expected values are computed in float64. Every draw is far from the next choice, so that rounding that adds up over an
episode changes none.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from group_cases import WINDOW, drawn, uniform_numbers
from vectors import Array, Case

from rl4sys.experience import ArraySpec
from rl4sys.policy import (
    ActionSpec,
    BoxAction,
    Chance,
    DiscreteAction,
    Head,
    MixedAction,
    MultiDiscreteAction,
    PolicySpec,
    ProgramBuilder,
    noise_size,
    output_size,
)
from rl4sys.policy.policy_spec import HeadKind

STEPS = 64
MARGIN = 1e-4
Registers = dict[str, torch.Tensor]
GROUPS, CLASSES, SIZE = 4, 3, 8


@dataclass(slots=True)
class Decided:
    """One decision: its action, what networks see of it, what is recorded, and the memory afterwards."""

    action: torch.Tensor
    seen: torch.Tensor
    log_prob: torch.Tensor | None
    carry: Registers = field(default_factory=dict)


Step = Callable[[Registers, Registers, torch.Tensor], Decided]
"""From registers (observation, memory and chance), weights and the head's uniform numbers to a decision."""


class TooClose(ValueError):
    """A draw so close to the next choice that rounding could change it."""


def episode_cases() -> Iterator[Case]:
    """Latents with a gate, every kind of action as the next input, and attention over a ring."""
    yield _latent_case("latent_episode", draw=True)
    yield _latent_case("latent_episode_best", draw=False)
    several, mixed = MultiDiscreteAction((2, 3)), MixedAction((3,), (-1.0, 0.0), (3.0, math.inf))
    yield _reacting("multi_discrete_episode", several, "categorical")
    yield _reacting("box_episode", BoxAction((-0.5, -math.inf, 1.0), (1.5, 2.0, 1.0)), "gaussian")
    yield _reacting("mixed_episode", mixed, "mixed")
    yield _attention_case()


def _latent_case(name: str, *, draw: bool) -> Case:
    """A small model of the kind that Dreamer acts with."""
    builder = ProgramBuilder((ArraySpec("x", "float32", (3,)),))
    memory = [builder.memory("h", (SIZE,)), builder.memory("z", (GROUPS * CLASSES,))]
    memory.append(builder.memory("previous", (3,), "done"))
    uniform = builder.chance("u", GROUPS, "uniform") if draw else None
    state = builder.gate(builder.linear(builder.joined(memory), 3 * SIZE, "gates"), "h", groups=2)
    logits = builder.linear(builder.joined([state, "x"]), GROUPS * CLASSES, "logits")
    latent = builder.latent(logits, GROUPS, uniform)
    scores = builder.linear(builder.joined([state, latent]), 3, "actor")
    builder.remember("h", state)
    builder.remember("z", latent)
    program = builder.program()
    head = Head("categorical" if draw else "deterministic", (scores,), settings={"action": "done"})

    def step(registers: Registers, weights: Registers, noise: torch.Tensor) -> Decided:
        x = torch.cat([registers[name] for name in ("h", "z", "previous")])
        states = []
        for part, held in zip(_linear(x, weights, "gates").chunk(2), registers["h"].chunk(2), strict=True):
            reset, candidate, update = part.chunk(3)
            states.append(torch.lerp(held, torch.tanh(reset.sigmoid() * candidate), torch.sigmoid(update - 1.0)))
        state = torch.cat(states)
        logits = _linear(torch.cat([state, registers["x"]]), weights, "logits").view(GROUPS, CLASSES)
        if draw:
            probability = 0.99 * logits.softmax(1) + 0.01 / CLASSES
            chosen = torch.stack([certain_draw(p, u) for p, u in zip(probability, registers["u"], strict=True)])
        else:
            chosen = torch.stack([_best(scores) for scores in logits])
        latent = F.one_hot(chosen, CLASSES).flatten().double()
        scores = _linear(torch.cat([state, latent]), weights, "actor")
        decided = _choose([scores], noise if draw else None)
        decided.action = decided.action[0]
        decided.carry = {"h": state, "z": latent, "previous": decided.seen}
        return decided

    return episode_case(name, PolicySpec(DiscreteAction(3), program, head), step)


def _reacting(name: str, action: ActionSpec, kind: HeadKind) -> Case:
    """A policy that sees its last action and chance of its own."""
    builder, size = ProgramBuilder((ArraySpec("x", "float32", (3,)),)), output_size(action)
    builder.memory("previous", (size,), "done")
    outputs = builder.linear(builder.joined(["x", "previous", builder.chance("e", 2, "normal")]), size, "actor")
    numbers = 0 if isinstance(action, MultiDiscreteAction) else len(action.low)
    tensors = (builder.tensor("log_std", numbers),) if numbers else ()
    head = Head(kind, (outputs,), tensors, settings={"action": "done"})
    sizes = () if isinstance(action, BoxAction) else action.sizes

    def step(registers: Registers, weights: Registers, noise: torch.Tensor) -> Decided:
        x = torch.cat([registers[name] for name in ("x", "previous", "e")])
        *scores, mean = _linear(x, weights, "actor").split([*sizes, numbers])
        decided = _choose(scores, noise)
        if numbers:
            normal = torch.distributions.Normal(mean, weights["log_std"].exp())
            unit = drawn((Chance("z", numbers, "normal"),), noise[None, len(sizes) :].float().numpy())["z"][0]
            vector = normal.mean + normal.stddev * unit
            decided.log_prob = decided.log_prob + normal.log_prob(vector).sum()
            decided.action = torch.cat([decided.action.double(), vector])
            decided.seen = torch.cat([decided.seen, scaled(vector, action)])
        decided.carry = {"previous": decided.seen}
        return decided

    return episode_case(name, PolicySpec(action, builder.program(), head), step)


def _attention_case() -> Case:
    builder = ProgramBuilder((ArraySpec("x", "float32", (3,)),))
    parts = [builder.linear("x", 6, name) for name in ("query", "key", "value")]
    found = builder.attention(*parts, heads=2, window=WINDOW, name="a")
    head = Head("categorical", (builder.linear(found, 4, "actor"),))
    past: list[tuple[torch.Tensor, torch.Tensor]] = []

    def step(registers: Registers, weights: Registers, noise: torch.Tensor) -> Decided:
        query, key, value = (_linear(registers["x"], weights, name) for name in ("query", "key", "value"))
        number = int(registers["a.count"].item())
        if not registers["a.keys"].any():
            past.clear()
        past.append((key, value))
        seen = past[: -WINDOW - 1 : -1]
        heads = [torch.stack([pair[i].view(2, 3) for pair in seen], dim=1) for i in range(2)]
        bias = weights["a.bias"][:, None, : len(seen)]
        found = F.scaled_dot_product_attention(query.view(2, 1, 3), *heads, attn_mask=bias).flatten()
        decided = _choose([_linear(found, weights, "actor")], noise)
        decided.action = decided.action[0]
        ring = {name: registers[f"a.{name}"].clone() for name in ("keys", "values")}
        ring["keys"][number % WINDOW], ring["values"][number % WINDOW] = key, value
        following = WINDOW if number + 1 == 2 * WINDOW else number + 1
        decided.carry = {f"a.{name}": array for name, array in ring.items()} | {"a.count": torch.tensor([following])}
        return decided

    return episode_case("attention_episode", PolicySpec(DiscreteAction(4), builder.program(), head), step)


def episode_case(name: str, spec: PolicySpec, step: Step) -> Case:
    """The first seed for which every draw is certain."""
    for seed in range(1000):
        try:
            return Case(name, spec, _played(spec, step, np.random.RandomState(zlib.crc32(f"{name}{seed}".encode()))))
        except TooClose:
            continue
    raise ValueError(f"No seed gives the case '{name}' draws that are all certain. Make it shorter.")


def _played(spec: PolicySpec, step: Step, rng: np.random.RandomState) -> dict[str, Array]:
    program = spec.program
    weights = {tensor.name: rng.uniform(-1.0, 1.0, tensor.shape).astype(np.float32) for tensor in program.tensors}
    observation = rng.uniform(-2.0, 2.0, (STEPS, 3)).astype(np.float32)
    noise = uniform_numbers(rng, STEPS, noise_size(spec))
    tensors = {name: torch.from_numpy(array).double() for name, array in weights.items()}
    carry = {memory.name: torch.zeros(memory.shape, dtype=torch.float64) for memory in program.carry}
    decisions = []
    for row in range(STEPS):
        chance = {name: array[0].double() for name, array in drawn(program.chance, noise[row : row + 1]).items()}
        registers = {"x": torch.from_numpy(observation[row]).double(), **carry, **chance}
        decisions.append(step(registers, tensors, torch.from_numpy(noise[row, program.uniform_numbers :]).double()))
        carry = {name: array.double() for name, array in decisions[-1].carry.items()}
    actions = torch.stack([decided.action for decided in decisions])
    arrays = {"weights": np.concatenate([array.ravel() for array in weights.values()])}
    arrays |= {"observation.x": observation, "noise": noise}
    arrays["action"] = actions.to(torch.float32 if actions.is_floating_point() else torch.uint8).numpy()
    if spec.noted:
        arrays["extras.log_prob"] = torch.stack([decided.log_prob for decided in decisions]).float().numpy()
    for name in carry:
        arrays[f"next_carry.{name}"] = torch.stack([decided.carry[name] for decided in decisions]).float().numpy()
    return arrays


def _linear(x: torch.Tensor, weights: Registers, name: str) -> torch.Tensor:
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _choose(scores: list[torch.Tensor], noise: torch.Tensor | None) -> Decided:
    """Independent choices: drawn, or without noise the best."""
    if noise is None:
        chosen = [_best(part) for part in scores]
    else:
        chosen = [certain_draw(part.softmax(0), u) for part, u in zip(scores, noise, strict=False)]
    one_hot = [F.one_hot(choice, len(part)).double() for choice, part in zip(chosen, scores, strict=True)]
    log_prob = sum((part.log_softmax(0)[choice] for part, choice in zip(scores, chosen, strict=True)), torch.zeros(()))
    nothing = torch.zeros(0, dtype=torch.float64)
    return Decided(torch.stack(chosen) if chosen else nothing, torch.cat([nothing, *one_hot]), log_prob)


def certain_draw(probability: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    cumulative = probability.cumsum(0)[:-1]
    if (cumulative - uniform).abs().min() < MARGIN:
        raise TooClose
    return (cumulative <= uniform).sum()


def _best(scores: torch.Tensor) -> torch.Tensor:
    first, second = scores.topk(2).values
    if first - second < MARGIN:
        raise TooClose
    return scores.argmax()


def scaled(numbers: torch.Tensor, action: BoxAction | MixedAction) -> torch.Tensor:
    """To [−1, 1] where both bounds are finite; 0 where they are equal."""
    seen = []
    for number, low, high in zip(numbers, action.low, action.high, strict=True):
        if math.isinf(low) or math.isinf(high):
            seen.append(number)
        elif low == high:
            seen.append(torch.zeros_like(number))
        else:
            seen.append((2.0 * (number - low) / (high - low) - 1.0).clamp(-1.0, 1.0))
    return torch.stack(seen)
