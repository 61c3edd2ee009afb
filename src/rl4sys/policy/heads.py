"""Heads over choices, and the choice of the head for a policy; heads over vectors are in `vector_heads`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.action_spec import BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction, output_size
from rl4sys.policy.candidate_heads import (
    best,
    counted,
    epsilon_greedy,
    nothing_allowed,
    sample,
    sample_listed,
)
from rl4sys.policy.planned_head import compile_planned, planned_noise_size
from rl4sys.policy.policy_spec import PolicySpec
from rl4sys.policy.vector_heads import Decide, compile_vector_head, deterministic, gaussian, vector_noise_size

_FEW_ROWS = 8
"""Up to this many rows, plain Python samples faster than numpy does."""
_ROUNDING = 1e-12
"""More than sums of so few weights in float64 can differ between two ways to round exp and log."""
_FEW = 32
"""Up to this many choices, plain Python decides for one row faster than numpy does."""

Choose = Callable[[Array, Array | None], Decide]
"""Compiles one choice for scores [N, choices] and a mask of the same shape."""


def noise_size(spec: PolicySpec) -> int:
    """How many uniform numbers one decision takes: those of the program's chance, then those of the head."""
    return spec.program.uniform_numbers + _head_noise_size(spec)


def _head_noise_size(spec: PolicySpec) -> int:
    match spec.head.kind, spec.action:
        case "planned", _:
            return planned_noise_size(spec.head, spec.action)
        case "categorical", MultiDiscreteAction(sizes=sizes):
            return len(sizes)
        case "categorical", _:
            return 1
        case "epsilon_greedy", _:
            return 2
        case "mixed", MixedAction(sizes=sizes, low=low):
            return len(sizes) + 2 * len(low)
        case _, BoxAction() as box:
            return vector_noise_size(spec.head, box)
    return 0


def head_outputs(spec: PolicySpec, rows: int) -> dict[str, Array]:
    """The registers that the head assigns: its action, and the next noise of a head with correlated noise."""
    shapes = {memory.next: memory.shape for memory in spec.program.carry}
    if spec.head.action_register is not None:
        shapes[spec.head.action_register] = (output_size(spec.action),)
    return {name: np.zeros((rows, *shapes[name]), np.float32) for name in spec.head.outputs}


def compile_head(
    spec: PolicySpec, registers: Mapping[str, Array], tensors: Arrays, categorical: Choose | None = None
) -> Decide:
    """The function that turns noise into decisions over these registers. `categorical`: another way to sample."""
    draw = categorical or _categorical
    head, action = spec.head, spec.action
    inputs = [registers[name] for name in head.inputs]
    mask = _mask(spec, registers)
    if head.count is not None:
        return _counted(spec, inputs[0], mask, registers[head.count], tensors)
    match head.kind, action:
        case "categorical", DiscreteAction():
            return draw(inputs[0], mask)
        case "categorical", MultiDiscreteAction(sizes=sizes):
            return _several(_split(inputs[0], sizes), _split(mask, sizes), draw)
        case "epsilon_greedy", DiscreteAction():
            return _epsilon_greedy(inputs[0], mask, tensors[head.tensors[0]])
        case "deterministic", DiscreteAction():
            return _greedy(inputs[0], mask)
        case "deterministic", MultiDiscreteAction(sizes=sizes):
            return _several(_split(inputs[0], sizes), _split(mask, sizes), _greedy)
        case "mixed", MixedAction() as mixed:
            return _mixed(inputs[0], mask, mixed, tensors[head.tensors[0]], draw)
        case "deterministic", MixedAction() as mixed:
            return _mixed(inputs[0], mask, mixed, None, _greedy)
        case "planned", BoxAction():
            return compile_planned(spec, registers, tensors)
        case _, BoxAction() as box:
            decide = compile_vector_head(head, box, registers, tensors)
            if decide is not None:
                return decide
    raise ValueError(
        f"Head '{head.kind}' cannot produce {action.kind} actions. Choose an algorithm whose head fits the "
        f"environment's action space."
    )


def _counted(spec: PolicySpec, scores: Array, mask: Array | None, count: Array, tensors: Arrays) -> Decide:
    """The head over the candidates that there are."""
    match spec.head.kind, spec.action:
        case "categorical", DiscreteAction():
            return counted(sample, scores, mask, count, notes=True)
        case "epsilon_greedy", DiscreteAction():
            choose = epsilon_greedy(tensors[spec.head.tensors[0]])
            return counted(choose, scores, mask, count, notes=False)
        case "deterministic", DiscreteAction():
            return counted(best, scores, mask, count, notes=False)
    raise ValueError(
        f"Head '{spec.head.kind}' cannot choose {spec.action.kind} actions among candidates. Use one discrete choice."
    )


def _mask(spec: PolicySpec, registers: Mapping[str, Array]) -> Array | None:
    head = spec.head
    if head.mask is None:
        return None
    mask, scores = registers[head.mask], registers[head.inputs[0]]
    if isinstance(spec.action, MixedAction):
        scores = scores[:, : spec.action.choices]
    if mask.dtype != np.bool_ or mask.shape != scores.shape:
        raise ValueError(
            f"The mask '{head.mask}' is {mask.dtype}{list(mask.shape[1:])}; "
            f"expected bool{list(scores.shape[1:])}, one for each choice."
        )
    return mask


def _allowed(scores: Array, mask: Array | None, masked: Array) -> Array:
    """The scores, with minus infinity where the mask forbids a choice."""
    if mask is None:
        return scores
    if not mask.any(axis=1).all():
        raise nothing_allowed()
    masked.fill(-np.inf)
    np.copyto(masked, scores, where=mask)
    return masked


def _categorical(logits: Array, mask: Array | None) -> Decide:
    """Inverse-CDF sampling: the first choice whose cumulative weight exceeds u · total, all in float64.

    In float64 the threshold stays below the total for every 24-bit u, so there is always a choice, and every
    language that sees the same logits makes the same one.
    """
    count, choices = logits.shape
    if count == 1 and choices <= _FEW:
        return _categorical_for_one(logits, mask)
    masked = np.empty_like(logits)
    shifted, weight, cumulative = (np.empty((count, choices), np.float64) for _ in range(3))
    total, below, offset = (
        cumulative[:, -1:],
        np.empty((count, choices), np.bool_),
        np.arange(count) * choices,
    )
    reduce_max, subtract, exp, add, less_equal = np.maximum.reduce, np.subtract, np.exp, np.add, np.less_equal

    def decide(noise: Array) -> tuple[Array, Arrays]:
        scores = _allowed(logits, mask, masked)
        subtract(scores, reduce_max(scores, 1, keepdims=True), shifted, dtype=np.float64)
        exp(shifted, weight)
        add.accumulate(weight, 1, out=cumulative)
        less_equal(cumulative, total * noise, below)
        action = add.reduce(below, 1, np.int64)
        log_prob = shifted.take(action + offset) - np.log(total[:, 0])
        return action, {"log_prob": log_prob.astype(np.float32)}

    return decide


def _categorical_for_one(logits: Array, mask: Array | None) -> Decide:
    """The same for a single row, which is faster in plain Python."""
    row, allowed = logits[0], None if mask is None else mask[0]
    chosen, noted = np.zeros(1, np.int64), np.zeros(1, np.float32)
    notes: Arrays = {"log_prob": noted}

    def decide(noise: Array) -> tuple[Array, Arrays]:
        scores = row.tolist()
        if allowed is not None:
            if not allowed.any():
                raise nothing_allowed()
            scores = [score if ok else -math.inf for score, ok in zip(scores, allowed.tolist(), strict=True)]
        chosen[0], noted[0] = sample_listed(scores, noise.item())
        return chosen, notes

    return decide


def categorical_by_row(logits: Array, mask: Array | None) -> Decide:
    """The choices of `act_on_row` for many rows.

    numpy rounds exp and log differently from plain Python. Rows in which that could matter, which are very few, are
    decided in plain Python again.
    """
    count, choices = logits.shape
    if choices > _FEW:
        return _categorical(logits, mask)
    masked = np.empty_like(logits)
    shifted, cumulative, gap = (np.empty((count, choices), np.float64) for _ in range(3))
    offset, total = np.arange(count) * choices, cumulative[:, -1:]

    def decide_few(noise: Array) -> tuple[Array, Arrays]:
        scores = _allowed(logits, mask, masked).tolist()
        sampled = list(map(sample_listed, scores, noise[:, 0].tolist()))
        notes = np.array([noted for _, noted in sampled], np.float32)
        return np.array([action for action, _ in sampled]), {"log_prob": notes}

    def decide(noise: Array) -> tuple[Array, Arrays]:
        scores = _allowed(logits, mask, masked)
        np.subtract(scores, np.maximum.reduce(scores, 1, keepdims=True), shifted, dtype=np.float64)
        np.exp(shifted, cumulative)
        np.add.accumulate(cumulative, 1, out=cumulative)
        np.subtract(cumulative, total * noise, gap)
        action = np.add.reduce(gap <= 0.0, 1, np.int64)
        # A choice in every row, also where NaN prevents one.
        np.minimum(action, choices - 1, out=action)
        exact = shifted.take(action + offset) - np.log(total[:, 0])
        log_prob = exact.astype(np.float32)
        np.abs(gap, gap)
        is_clear = (np.minimum.reduce(gap, 1) > _ROUNDING * total[:, 0]) & (
            (exact - _ROUNDING).astype(np.float32) == (exact + _ROUNDING).astype(np.float32)
        )
        for row in np.flatnonzero(~is_clear).tolist():
            action[row], log_prob[row] = sample_listed(scores[row].tolist(), noise[row].item())
        return action, {"log_prob": log_prob}

    return decide_few if count <= _FEW_ROWS else decide


def _greedy(scores: Array, mask: Array | None) -> Decide:
    masked = np.empty_like(scores)
    return lambda noise: (_allowed(scores, mask, masked).argmax(1), {})


def _epsilon_greedy(scores: Array, mask: Array | None, epsilon: Array) -> Decide:
    """With probability ε a uniformly random allowed choice; else the best one."""
    masked, choices = np.empty_like(scores), scores.shape[1]

    def decide(noise: Array) -> tuple[Array, Arrays]:
        action = _allowed(scores, mask, masked).argmax(1)
        exploring = noise[:, 0] < epsilon[0]
        if exploring.any():
            # In float64 the product is exact, so its whole part is the same in every language.
            share = noise[:, 1].astype(np.float64)
            if mask is None:
                random = (share * choices).astype(np.int64)
            else:
                wanted = (share * mask.sum(1)).astype(np.int64)
                random = (mask.cumsum(1) > wanted[:, None]).argmax(1)
            np.copyto(action, random, where=exploring)
        return action, {}

    return decide


def _several(scores: list[Array], masks: list[Array], one: Choose) -> Decide:
    """Independent choices side by side; their log-probabilities add up."""
    decide_each = [one(part, masks[index] if masks else None) for index, part in enumerate(scores)]

    def decide(noise: Array) -> tuple[Array, Arrays]:
        decisions = [decide_one(noise[:, index : index + 1]) for index, decide_one in enumerate(decide_each)]
        action = np.stack([action for action, _ in decisions], axis=1)
        notes = [note["log_prob"] for _, note in decisions if note]
        # In this order for any number of rows: `np.add.reduce` has another one for a single row.
        return action, {"log_prob": reduce(np.add, notes)} if notes else {}

    return decide


def _mixed(output: Array, mask: Array | None, action: MixedAction, log_std: Array | None, choose_one: Choose) -> Decide:
    """Choices and a vector side by side; without log_std the best ones. Log-probabilities add up."""
    sizes, choices, parts = action.sizes, action.choices, len(action.sizes)
    choose = _several(_split(output[:, :choices], sizes), _split(mask, sizes), choose_one)
    vector = deterministic(output[:, choices:]) if log_std is None else gaussian(output[:, choices:], log_std)

    def decide(noise: Array) -> tuple[Array, Arrays]:
        chosen, chosen_notes = choose(noise[:, :parts])
        numbers, notes = vector(noise[:, parts:])
        action = np.concatenate([chosen.astype(np.float32), numbers], axis=1)
        return action, {name: chosen_notes[name] + noted for name, noted in notes.items()}

    return decide


def _split(array: Array | None, sizes: tuple[int, ...]) -> list[Array]:
    return [] if array is None else np.split(array, np.cumsum(sizes)[:-1], axis=1)
