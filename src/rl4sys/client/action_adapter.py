"""Turns decisions of a policy into actions of the system, and actions of a fallback into what is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy import ActionSpec, ActionStructure, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction


class BadAction(ValueError):
    """An action is not one of the action space."""


class ActionAdapter(NamedTuple):
    """The two directions for one kind of action."""

    finish: Callable[[Array], Any]
    """From a decision for one row to the action for the system: shifted to its first choice, or clipped to its bounds.

    What is recorded is the decision itself."""
    read: Callable[[Any], Array]
    """From an action of the system to the row that is recorded, or `BadAction`."""
    agree: Callable[[Array, Array], bool]
    """Whether two rows that are recorded mean the same action, or nearly so."""


def action_adapter(kind: ActionSpec, structure: ActionStructure | None = None) -> ActionAdapter:
    """The adapter for a kind of action, or for the named or nested parts that it is made of."""
    if structure is not None:
        return _structured(structure)
    match kind:
        case DiscreteAction(n=n, start=start):
            return _one_choice(n, start)
        case MultiDiscreteAction(sizes=sizes):
            return _several_choices(sizes)
        case BoxAction(low=low, high=high):
            return _vector(np.array(low, np.float32), np.array(high, np.float32))
        case MixedAction(sizes=sizes, box=box):
            parts = action_adapter(MultiDiscreteAction(sizes)), action_adapter(box)
            return _mixed(*parts, len(sizes), len(sizes) + box.size)


def _one_choice(n: int, start: int) -> ActionAdapter:
    def read(value: Any) -> Array:
        action = _numbers(value, ())
        if action.dtype.kind not in "iu" or not start <= int(action) < start + n:
            raise BadAction(f"Got {value!r}; expected a whole number from {start} to {start + n - 1}.")
        return np.asarray(int(action) - start, np.int64)

    return ActionAdapter(lambda action: action.item() + start, read, _equal)


def _several_choices(sizes: tuple[int, ...]) -> ActionAdapter:
    bound = np.array(sizes)

    def read(value: Any) -> Array:
        action = _numbers(value, bound.shape)
        if action.dtype.kind not in "iu" or (action < 0).any() or (action >= bound).any():
            raise BadAction(f"Got {value!r}; expected {len(sizes)} whole numbers from 0, below {list(sizes)}.")
        return action.astype(np.int64)

    return ActionAdapter(lambda action: action[0].copy(), read, _equal)


def _vector(low: Array, high: Array) -> ActionAdapter:
    spread = np.where(np.isfinite(low) & np.isfinite(high), high - low, np.float32(1.0))
    # Rounding may lead just beyond a bound; one percent of the range counts as agreement.
    slack, near = np.float32(1e-5) * spread, np.float32(0.01) * spread

    def read(value: Any) -> Array:
        action = _numbers(value, low.shape).astype(np.float32)
        if not np.isfinite(action).all() or (action < low - slack).any() or (action > high + slack).any():
            raise BadAction(f"Got {value!r}; expected numbers from {low.tolist()} to {high.tolist()}.")
        return action

    def agree(one: Array, other: Array) -> bool:
        return bool((abs(np.clip(one, low, high) - other) <= near).all())

    return ActionAdapter(lambda action: np.clip(action[0], low, high), read, agree)


def _structured(structure: ActionStructure) -> ActionAdapter:
    parts = [action_adapter(leaf) for leaf in structure.leaves]

    def finish(action: Array) -> Any:
        finished = [part.finish(one) for part, one in zip(parts, structure.split(action[:1]), strict=True)]
        return structure.nest(finished)

    def read(value: Any) -> Array:
        try:
            given = structure.flatten(value)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise BadAction(f"Got {value!r}, which has other parts than the action: {error}.") from error
        return structure.join([part.read(one) for part, one in zip(parts, given, strict=True)])

    def agree(one: Array, other: Array) -> bool:
        pairs = zip(structure.split(one[None]), structure.split(other[None]), strict=True)
        return all(part.agree(first[0], second[0]) for part, (first, second) in zip(parts, pairs, strict=True))

    return ActionAdapter(finish, read, agree)


def _mixed(choices: ActionAdapter, numbers: ActionAdapter, count: int, size: int) -> ActionAdapter:
    """One flat vector: `count` choices first, then the numbers."""

    def finish(action: Array) -> Any:
        return np.concatenate([action[0][:count], numbers.finish(action[:, count:])])

    def read(value: Any) -> Array:
        flat = _numbers(value, (size,)).astype(np.float32)
        if (flat[:count] != flat[:count].round()).any():
            raise BadAction(f"Got {value!r}; expected whole numbers for the first {count} parts.")
        return np.concatenate(
            [choices.read(flat[:count].astype(np.int64)), numbers.read(flat[count:])], dtype=np.float32
        )

    def agree(one: Array, other: Array) -> bool:
        return choices.agree(one[:count], other[:count]) and numbers.agree(one[count:], other[count:])

    return ActionAdapter(finish, read, agree)


def _equal(one: Array, other: Array) -> bool:
    return bool(np.equal(one, other).all())


def _numbers(value: Any, shape: tuple[int, ...]) -> Array:
    if callable(getattr(value, "detach", None)):
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise BadAction(f"Got {value!r}, which is not made of numbers: {error}.") from error
    if array.dtype.kind not in "iuf" or array.shape != shape:
        raise BadAction(f"Got {value!r} of shape {array.shape}; expected numbers of shape {shape}.")
    return array
