"""Space conversion: Gymnasium spaces as named arrays, and our actions as what an environment wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array, Arrays, ArraySpec
from rl4sys.policy import (
    CANDIDATES,
    COUNT,
    ActionSpec,
    ActionStructure,
    ActionTree,
    BoxAction,
    DiscreteAction,
    MixedAction,
    MultiDiscreteAction,
    candidate_arrays,
)

Space = gymnasium.Space[Any]
MASK = "action_mask"
"""The observation array that says which discrete choices are allowed."""


class UnsupportedSpace(ValueError):
    """A space that cannot be written as arrays of fixed shape."""


class ObservationMismatch(ValueError):
    """An environment returned an observation that is not in its observation space."""


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """What an environment shows and what it takes."""

    observation: tuple[ArraySpec, ...]
    action: ActionSpec


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One array of the observation: where it sits in what the environment returns, and how it is encoded."""

    spec: ArraySpec
    path: tuple[str | int, ...]
    encode: Callable[[Array], Array] | None = None
    """From stacked raw values [N, …] to [N, *spec.shape]; None where they are these already."""
    stack: Callable[[Sequence[Any] | Array], Array] = np.asarray
    """From the values of all lanes to stacked raw values; those of candidates differ in length."""

    def fill(self, out: Array, values: Sequence[Any] | Array) -> None:
        try:
            rows = self.stack(values)
            if self.encode is not None:
                rows = self.encode(rows)
        except (ValueError, IndexError) as error:
            raise self._mismatch(str(error)) from error
        if rows.shape != out.shape:
            raise self._mismatch(f"the shape is {rows.shape[1:]}")
        out[...] = rows

    def _mismatch(self, found: str) -> ObservationMismatch:
        return ObservationMismatch(
            f"The environment returned an observation that does not fit {self.spec}, as its space promises: "
            f"{found}. Correct the environment or its space."
        )


class ObservationConverter:
    """Turns what environments return into named arrays, one row per lane."""

    def __init__(self, space: Space, mask: ArraySpec | None = None, action: ActionSpec | None = None) -> None:
        """`mask` describes an action mask that comes in `info`; one within the observation goes first.

        A discrete `action` says how many candidates there may be, where the observation is a sequence of them.
        """
        self._leaves = tuple(_leaves(space, (), action.n if isinstance(action, DiscreteAction) else None))
        names = [leaf.spec.name for leaf in self._leaves]
        if len(set(names)) < len(names):
            raise UnsupportedSpace(f"Two parts of the observation have the same name among {names}. Rename one.")
        self._mask = None if mask is None or MASK in names else _Leaf(mask, (), _flat)
        leaves = self._leaves if self._mask is None else (*self._leaves, self._mask)
        self.specs = tuple(leaf.spec for leaf in leaves)

    def empty(self, count: int) -> dict[str, Array]:
        """Empty arrays for `count` rows."""
        return {spec.name: np.zeros((count, *spec.shape), spec.dtype) for spec in self.specs}

    def fill(self, out: Arrays, observations: Sequence[Any], infos: Sequence[Mapping[str, Any]]) -> None:
        """Write one row for each single observation."""
        for leaf in self._leaves:
            values = observations
            for key in leaf.path:
                values = [value[key] for value in values]
            leaf.fill(out[leaf.spec.name], values)
        if self._mask is not None:
            self._mask.fill(out[MASK], [_mask_in(info) for info in infos])

    def fill_batch(self, out: Arrays, observation: Any, mask: Array) -> None:
        """Write all rows at once from what is batched already; a mask that is not wanted is not read."""
        for leaf in self._leaves:
            values = observation
            for key in leaf.path:
                values = values[key]
            leaf.fill(out[leaf.spec.name], values)
        if self._mask is not None:
            self._mask.fill(out[MASK], mask)

    def single(self, observation: Any, info: Mapping[str, Any]) -> Arrays:
        """One observation as arrays of its own, without a lane axis."""
        out = self.empty(1)
        self.fill(out, [observation], [info])
        return {name: array[0, ...] for name, array in out.items()}


def action_mask_spec(action: ActionSpec) -> ArraySpec:
    """The array that allows or forbids every choice of a discrete action, one group after another."""
    match action:
        case DiscreteAction(n=n):
            return ArraySpec(MASK, "bool", (n,))
        case MultiDiscreteAction(sizes=sizes) | MixedAction(sizes=sizes):
            return ArraySpec(MASK, "bool", (sum(sizes),))
        case BoxAction():
            raise UnsupportedSpace("An action mask needs discrete actions; these are continuous. Drop the mask.")


def action_spec(space: Space) -> ActionSpec:
    """The actions of this space as policies see them: choices counted from 0, or one flat vector."""
    match space:
        case spaces.Discrete():
            return DiscreteAction(int(space.n), int(space.start))
        case spaces.MultiDiscrete() if space.nvec.ndim == 1:
            return MultiDiscreteAction(tuple(int(size) for size in space.nvec))
        case spaces.MultiBinary():
            return MultiDiscreteAction((2,) * int(np.prod(space.shape)))
        case spaces.Box():
            return BoxAction(tuple(space.low.ravel().tolist()), tuple(space.high.ravel().tolist()))
        case spaces.Dict() | spaces.Tuple() if len(space.spaces):
            return ActionStructure(_action_tree(space)).spec
    raise UnsupportedSpace(
        f"Actions of {space} are not supported; expected Discrete, MultiDiscrete (1-D), MultiBinary, Box, or a Dict or "
        f"Tuple of these. Wrap the environment with gymnasium.wrappers.TransformAction to offer one of these."
    )


def _action_tree(space: Space) -> ActionTree:
    match space:
        case spaces.Dict():
            return {name: _action_tree(part) for name, part in space.items()}
        case spaces.Tuple():
            return tuple(map(_action_tree, space))
    return action_spec(space)


def _action_leaves(space: Space) -> list[Space]:
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return [space]
    parts = space.values() if isinstance(space, spaces.Dict) else space
    return [leaf for part in parts for leaf in _action_leaves(part)]


def action_batch_converter(space: Space) -> Callable[[Array], Any]:
    """From a batch of our actions to the batch that a vector environment of this space wants."""
    action_spec(space)
    match space:
        case spaces.Dict() | spaces.Tuple():
            structure = ActionStructure(_action_tree(space))
            convert = [action_batch_converter(leaf) for leaf in _action_leaves(space)]
            return lambda action: structure.nest(
                [one(part) for one, part in zip(convert, structure.split(action), strict=True)]
            )
        case spaces.Discrete(start=start) | spaces.MultiDiscrete(start=start):
            return lambda action: (action + start).astype(space.dtype, copy=False)
        case spaces.Box(low=low, high=high, dtype=dtype, shape=shape):
            whole = np.issubdtype(dtype, np.integer)

            def clipped(action: Array) -> Array:
                shaped = action.reshape(len(action), *shape)
                if whole:
                    # Clipped first: a number beyond the range of the type would wrap around.
                    return np.asarray(np.clip(np.rint(shaped), low, high)).astype(dtype)
                # Bounds are compared in the space's own precision, so that nothing lands just outside them.
                return np.asarray(np.clip(shaped.astype(dtype), low, high))

            return clipped
    return lambda action: action.astype(space.dtype).reshape(len(action), *(space.shape or ()))


def action_converter(space: Space) -> Callable[[Array], list[Any]]:
    """From a batch of our actions to what each environment's `step` wants; boxes are clipped to bounds."""
    batch = action_batch_converter(space)
    match space:
        case spaces.Discrete(start=start) if start == 0:
            return lambda action: action.tolist()
        case spaces.Discrete():
            return lambda action: batch(action).tolist()
        case spaces.Dict() | spaces.Tuple():
            structure = ActionStructure(_action_tree(space))
            each = [action_converter(leaf) for leaf in _action_leaves(space)]

            def structured(action: Array) -> list[Any]:
                parts = [one(part) for one, part in zip(each, structure.split(action), strict=True)]
                return [structure.nest(row) for row in zip(*parts, strict=True)]

            return structured
    return lambda action: list(batch(action))


def _leaves(space: Space, path: tuple[str | int, ...], choices: int | None) -> Iterator[_Leaf]:
    name = ".".join(map(str, path)) or "observation"
    if isinstance(space, spaces.Sequence) and path in ((), (CANDIDATES,)):
        yield from _candidates(space, path, choices)
        return
    if path == (COUNT,) and not isinstance(space, spaces.Dict | spaces.Tuple):
        yield _Leaf(ArraySpec(COUNT, "float32", (1,)), path, lambda values: values.reshape(-1, 1))
        return
    if path == (MASK,) and isinstance(space, spaces.Box | spaces.MultiBinary):
        yield _Leaf(ArraySpec(MASK, "bool", (int(np.prod(space.shape)),)), path, _flat)
        return
    match space:
        case spaces.Box(dtype=dtype, shape=shape):
            yield _Leaf(ArraySpec(name, "uint8" if dtype == np.uint8 else "float32", shape), path)
        case spaces.MultiBinary(shape=shape):
            yield _Leaf(ArraySpec(name, "float32", shape), path)
        case spaces.Discrete(n=n, start=start):
            yield _Leaf(ArraySpec(name, "float32", (int(n),)), path, _one_hot(np.array([n]), np.array([start])))
        case spaces.MultiDiscrete(nvec=sizes, start=starts):
            encode = _one_hot(sizes.ravel(), starts.ravel())
            yield _Leaf(ArraySpec(name, "float32", (int(sizes.sum()),)), path, encode)
        case spaces.Dict() | spaces.Tuple():
            parts = space.items() if isinstance(space, spaces.Dict) else enumerate(space)
            for key, part in parts:
                yield from _leaves(part, (*path, key), choices)
        case _:
            raise UnsupportedSpace(
                f"Observation '{name}' of {space} has no fixed shape. Wrap the environment to return arrays, "
                f"with gymnasium.wrappers.FlattenObservation or TransformObservation."
            )


def _candidates(space: spaces.Sequence, path: tuple[str | int, ...], choices: int | None) -> Iterator[_Leaf]:
    """The rows of a sequence, filled up with zeros, and how many there are."""
    feature = space.feature_space
    if choices is None or not isinstance(feature, spaces.Box) or len(feature.shape) != 1:
        raise UnsupportedSpace(
            f"A sequence in an observation is a number of candidates, each a Box with one axis, of which a Discrete "
            f"action chooses one; got {space}. Correct the spaces."
        )
    rows, count = candidate_arrays(choices, feature.shape[0])

    def stack(lanes: Sequence[Any] | Array) -> Array:
        filled = np.zeros((len(lanes), *rows.shape), np.float32)
        for lane, found in zip(filled, lanes, strict=True):
            if len(found) > choices:
                raise ValueError(f"there are {len(found)} candidates, and the action has {choices} choices")
            lane[: len(found)] = np.asarray(found, np.float32).reshape(len(found), rows.shape[1])
        return filled

    yield _Leaf(rows, path, None, stack)
    yield _Leaf(count, path, None, lambda lanes: np.array([[len(found)] for found in lanes], np.float32))


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1).astype(bool)


def _one_hot(sizes: Array, starts: Array) -> Callable[[Array], Array]:
    """Several choices [N, k] as one-hot vectors side by side [N, sum of sizes]."""
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - starts
    width = int(sizes.sum())

    def encode(values: Array) -> Array:
        columns = values.reshape(len(values), -1) + first
        encoded = np.zeros((len(values), width), np.float32)
        np.put_along_axis(encoded, columns, 1.0, axis=1)
        return encoded

    return encode


def _mask_in(info: Mapping[str, Any]) -> Any:
    if MASK not in info:
        raise ObservationMismatch(
            f"info has no '{MASK}' though the first reset gave one; it has {sorted(info)}. "
            f"Give the mask with every reset and step."
        )
    return flat_mask(info[MASK])


def flat_mask(mask: Any) -> Array:
    """A mask as one vector; that of a multi-discrete action may be a tuple with a part for each choice."""
    return np.concatenate(mask) if isinstance(mask, tuple) else np.ravel(mask)
