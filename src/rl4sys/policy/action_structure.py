"""Structured actions: named or nested parts, which a policy decides as one flat action."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.action_spec import ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction

ActionTree: TypeAlias = "ActionSpec | Mapping[str, ActionTree] | tuple[ActionTree, ...]"
"""A kind of action, or several by name or position."""


class ActionStructure:
    """The parts of an action, and how they follow each other in a flat one: all choices first, then all real numbers.

    Parts that are all choices make a multi-discrete action, parts that are all real numbers make a box, and others a
    mixed action.
    """

    def __init__(self, tree: ActionTree) -> None:
        self._tree = tree
        self.leaves = tuple(_leaves(tree))
        """The parts in the order of the tree."""
        if not self.leaves or any(isinstance(leaf, MixedAction) for leaf in self.leaves):
            raise ValueError(f"Got the action {tree}; expected at least one part, each of choices or of real numbers.")
        self._choices = [_choice_count(leaf) for leaf in self.leaves]
        self._numbers = [leaf.size if isinstance(leaf, BoxAction) else 0 for leaf in self.leaves]
        self.spec: ActionSpec = _combined(self.leaves)
        """The flat action."""

    def split(self, actions: Array) -> list[Array]:
        """The parts of flat actions [N, …], in the order of `leaves`: int64 [N] or [N, k], or float32 [N, k]."""
        rows = actions.reshape(len(actions), -1)
        chosen, numbers = 0, sum(self._choices)
        parts = []
        for leaf, choices, size in zip(self.leaves, self._choices, self._numbers, strict=True):
            if size:
                parts.append(rows[:, numbers : numbers + size])
                numbers += size
            else:
                part = rows[:, chosen : chosen + choices].astype(np.int64)
                parts.append(part[:, 0] if isinstance(leaf, DiscreteAction) else part)
                chosen += choices
        return parts

    def join(self, parts: Sequence[Any]) -> Array:
        """One flat action from its parts in the order of `leaves`; choices are counted from 0."""
        flat = [np.asarray(part).reshape(-1) for part in parts]
        chosen = [part for part, size in zip(flat, self._numbers, strict=True) if not size]
        numbers = [part for part, size in zip(flat, self._numbers, strict=True) if size]
        return np.concatenate([*chosen, *numbers]).astype(np.float32 if numbers else np.int64)

    def nest(self, parts: Sequence[Any]) -> Any:
        """The parts, in the order of `leaves`, as dictionaries and tuples."""
        return _nested(self._tree, iter(parts))

    def flatten(self, structured: Any) -> list[Any]:
        """The parts of a structured action in the order of `leaves`; KeyError or ValueError if they do not fit."""
        return list(_flattened(self._tree, structured))


def _combined(leaves: tuple[ActionSpec, ...]) -> ActionSpec:
    sizes: tuple[int, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    for leaf in leaves:
        match leaf:
            case DiscreteAction(n=n):
                sizes += (n,)
            case MultiDiscreteAction(sizes=several):
                sizes += several
            case BoxAction():
                low, high = low + leaf.low, high + leaf.high
    if not low:
        return MultiDiscreteAction(sizes)
    return MixedAction(sizes, low, high) if sizes else BoxAction(low, high)


def _choice_count(leaf: ActionSpec) -> int:
    match leaf:
        case DiscreteAction():
            return 1
        case MultiDiscreteAction(sizes=sizes):
            return len(sizes)
    return 0


def _leaves(tree: ActionTree) -> Iterator[ActionSpec]:
    if isinstance(tree, Mapping | tuple):
        for part in tree.values() if isinstance(tree, Mapping) else tree:
            yield from _leaves(part)
    else:
        yield tree


def _nested(tree: ActionTree, parts: Iterator[Any]) -> Any:
    if isinstance(tree, Mapping):
        return {name: _nested(part, parts) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_nested(part, parts) for part in tree)
    return next(parts)


def _flattened(tree: ActionTree, structured: Any) -> Iterator[Any]:
    if isinstance(tree, Mapping):
        if structured.keys() != tree.keys():
            raise ValueError(f"the action has the parts {sorted(structured)}; expected {sorted(tree)}")
        for name, part in tree.items():
            yield from _flattened(part, structured[name])
    elif isinstance(tree, tuple):
        for part, value in zip(tree, structured, strict=True):
            yield from _flattened(part, value)
    else:
        yield structured
