"""Observation and action spaces from a config file or from Gymnasium spaces, without importing Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.client.section import Section, SettingsError, shown
from rl4sys.experience import ArraySpec
from rl4sys.policy import (
    MASK,
    ActionSpec,
    ActionStructure,
    ActionTree,
    BoxAction,
    DiscreteAction,
    MixedAction,
    MultiDiscreteAction,
    candidate_arrays,
)

OBSERVATION = "observation"
"""The name of an observation that is one unnamed array."""
_ARRAY = {"dtype", "shape", "default"}
"""The settings of one array; `feature_defaults` reads the last one."""
_LEAST = -(1 << 63)
_KINDS = {"n": "discrete", "sizes": "multi_discrete", "low": "box"}
"""The setting that shows which kind of action is described."""


def observation_from_settings(value: Any, where: str = "observation") -> tuple[ArraySpec, ...]:
    """`8`, `[84, 84]`, or named arrays `{queue: 8, image: {dtype: uint8, shape: [84, 84], default: 0}}`."""
    if is_one_array(value):
        return (_array(OBSERVATION, value, where),)
    return tuple(_array(str(name), array, f"{where}.{name}") for name, array in value.items())


def described_spaces(section: Section) -> tuple[tuple[ArraySpec, ...], ActionSpec | None]:
    """What a policy observes and decides, from the settings `observation`, `candidates`, `action` and `action_mask`."""
    given, candidates = section.raw("observation"), section.raw("candidates")
    observation = () if given is None else observation_from_settings(given)
    action = None if section.raw("action") is None else action_from_settings(section.raw("action"))
    if candidates is not None:
        rows = _candidates(candidates)
        observation = (*rows, *observation)
        most = rows[0].shape[0]
        if action is None:
            action = DiscreteAction(most)
        if action != DiscreteAction(most):
            raise SettingsError(f"action: there are up to {most} candidates. Leave it out, or let it be {most}.")
    if section.raw("action_mask", False) and action and all(spec.name != MASK for spec in observation):
        observation += mask_for(action)
    return observation, action


def _candidates(value: Any) -> tuple[ArraySpec, ArraySpec]:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not is_pair or not all(isinstance(n, int) and not isinstance(n, bool) and 0 < n <= 1 << 24 for n in value):
        raise SettingsError(
            f"candidates: got {shown(value)}; expected two numbers: how many there are at most, and how many features "
            f"each has, such as [128, 8]."
        )
    return candidate_arrays(*value)


def is_one_array(value: Any) -> bool:
    """Whether the setting `observation` describes one unnamed array, not several by name."""
    return not isinstance(value, Mapping) or value.keys() <= _ARRAY


def action_from_settings(value: Any, where: str = "action") -> ActionSpec:
    """`4` (choices), `{n: 4, start: 0}`, `{sizes: [3, 2]}`, `{low: [-1, -1], high: [1, 1]}`, or parts of these."""
    structure = action_structure_from_settings(value, where)
    return _one_action(value, where) if structure is None else structure.spec


def action_structure_from_settings(value: Any, where: str = "action") -> ActionStructure | None:
    """The parts of a structured action, by name `{server: 4, rate: {low: [0], high: [1]}}` or position; else None."""
    tree = _action_tree(value, where)
    return ActionStructure(tree) if isinstance(tree, Mapping | tuple) else None


def _action_tree(value: Any, where: str) -> ActionTree:
    if isinstance(value, list | tuple) and value:
        return tuple(_action_tree(part, f"{where}[{index}]") for index, part in enumerate(value))
    if isinstance(value, Mapping) and value and not value.keys() & _KINDS.keys():
        return {str(name): _action_tree(part, f"{where}.{name}") for name, part in value.items()}
    return _one_action(value, where)


def _one_action(value: Any, where: str) -> ActionSpec:
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"n": value}
    section = Section(value, where)
    given = [kind for name, kind in _KINDS.items() if name in section]
    if len(given) != 1 or section.choice("kind", _KINDS.values(), given[0]) != given[0]:
        raise SettingsError(
            f"{where}: got {shown(value)}; expected one of n, sizes, or low with high, or named parts with one of "
            f"these each."
        )
    action: ActionSpec
    if given == ["discrete"]:
        action = DiscreteAction(section.whole("n", least=1) or 1, section.whole("start", least=_LEAST) or 0)
    elif given == ["multi_discrete"]:
        action = _several(section.raw("sizes"), where)
    else:
        action = _box(section.raw("low"), section.raw("high"), where)
    section.finish()
    return action


def observation_from_space(space: Any) -> tuple[ArraySpec, ...]:
    """The arrays of a Gymnasium `Box`, or of a `Dict` of them; `action_mask` becomes the mask."""
    parts = getattr(space, "spaces", None)
    if parts is None:
        return (_space_array(OBSERVATION, space),)
    if not isinstance(parts, Mapping):
        raise _unsupported(space)
    return tuple(_space_array(str(name), part) for name, part in parts.items())


def action_from_space(space: Any) -> ActionSpec:
    """The action of a Gymnasium `Discrete`, `MultiDiscrete` or flat `Box`, or of a `Dict` or `Tuple` of these."""
    structure = action_structure_from_space(space)
    return _one_space(space) if structure is None else structure.spec


def action_structure_from_space(space: Any) -> ActionStructure | None:
    """The parts of a `Dict` or `Tuple` of spaces; None for others."""
    tree = _space_tree(space)
    return ActionStructure(tree) if isinstance(tree, Mapping | tuple) else None


def _space_tree(space: Any) -> ActionTree:
    parts = getattr(space, "spaces", None)
    if parts is None:
        return _one_space(space)
    if isinstance(parts, Mapping):
        return {str(name): _space_tree(part) for name, part in parts.items()}
    return tuple(map(_space_tree, parts))


def _one_space(space: Any) -> ActionSpec:
    if (n := getattr(space, "n", None)) is not None:
        return DiscreteAction(int(n), int(getattr(space, "start", 0)))
    if (sizes := getattr(space, "nvec", None)) is not None:
        return MultiDiscreteAction(tuple(int(size) for size in np.ravel(sizes)))
    if getattr(space, "low", None) is not None and len(space.shape) == 1:
        return _box(space.low.tolist(), space.high.tolist(), "action_space")
    raise _unsupported(space)


def mask_for(action: ActionSpec) -> tuple[ArraySpec, ...]:
    """The array of the action mask; none for continuous actions."""
    match action:
        case DiscreteAction(n=n):
            return (ArraySpec(MASK, "bool", (n,)),)
        case MultiDiscreteAction(sizes=sizes) | MixedAction(sizes=sizes):
            return (ArraySpec(MASK, "bool", (sum(sizes),)),)
        case BoxAction():
            return ()


def _array(name: str, value: Any, where: str) -> ArraySpec:
    if not isinstance(value, Mapping):
        value = {"shape": value}
    section = Section(value, where)
    dtype = section.text("dtype", "bool" if name == MASK else "float32") or ""
    shape = section.raw("shape", [])
    section.raw("default")
    section.finish()
    lengths = [shape] if isinstance(shape, int) else shape
    if not isinstance(lengths, list | tuple) or not all(isinstance(n, int) and n > 0 for n in lengths):
        raise SettingsError(f"{where}: got shape {shown(shape)}; expected a length or a list of lengths.")
    try:
        return ArraySpec(name, str(np.dtype(dtype)), tuple(lengths))
    except TypeError as error:
        raise SettingsError(f"{where}: got dtype {dtype!r}; expected one such as float32 or uint8.") from error


def _space_array(name: str, space: Any) -> ArraySpec:
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if shape is None or dtype is None or getattr(space, "n", None) not in (None, *shape):
        raise _unsupported(space)
    if name == MASK:
        return ArraySpec(name, "bool", tuple(shape))
    return ArraySpec(name, "uint8" if dtype == np.uint8 else "float32", tuple(shape))


def _several(sizes: Any, where: str) -> MultiDiscreteAction:
    if not isinstance(sizes, list | tuple) or not sizes:
        raise SettingsError(f"{where}.sizes: got {shown(sizes)}; expected a list of whole numbers.")
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes):
        raise SettingsError(f"{where}.sizes: got {shown(sizes)}; expected whole numbers, at least 1.")
    return MultiDiscreteAction(tuple(sizes))


def _box(low: Any, high: Any, where: str) -> BoxAction:
    try:
        box = BoxAction(tuple(map(float, low)), tuple(map(float, high)))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{where}: got bounds {shown(low)} and {shown(high)}; expected two lists.") from error
    if not box.low or len(box.low) != len(box.high) or not all(map(float.__le__, box.low, box.high)):
        raise SettingsError(
            f"{where}: got bounds {shown(low)} to {shown(high)}; expected one low and one high bound for each number, "
            f"low at most high."
        )
    return box


def _unsupported(space: object) -> SettingsError:
    return SettingsError(
        f"Got the space {space}; expected a Box or a Dict of them to observe, and a Discrete, MultiDiscrete, "
        f"flat Box, or a Dict or Tuple of these to act. Describe it in the config instead: "
        f"`observation: {{queue: 8}}`, `action: 4`."
    )
