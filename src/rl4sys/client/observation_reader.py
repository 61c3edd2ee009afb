"""Puts what a system observes into rows of columns: arrays, lists, numbers or tensors, alone or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import MASK

_INFINITY = float("inf")


class BadObservation(ValueError):
    """An observation is not what the policy was made for. Nothing of it was recorded."""


class _Usual:
    """The one array that a policy sees, with what is asked of it in every decision at hand."""

    def __init__(self, spec: ArraySpec) -> None:
        self.spec, self.name, self.shape = spec, spec.name, spec.shape
        self.dtype = np.dtype(spec.dtype)
        self.is_vector = self.dtype.kind == "f" and len(spec.shape) == 1


class ObservationReader:
    """Knows which arrays a policy sees, and copies one observation into a row of each."""

    def __init__(self, specs: Sequence[ArraySpec]) -> None:
        self._seen = [spec for spec in specs if spec.name != MASK]
        self._only = self._seen[0] if len(self._seen) == 1 else None
        self._usual = None if self._only is None else _Usual(self._only)
        self._mask = next((spec for spec in specs if spec.name == MASK), None)

    def write(self, columns: Mapping[str, Array], row: int, observation: Any, mask: Any) -> None:
        """Copy into row `row`; a mask that is absent allows everything."""
        usual, only = self._usual, self._only
        if (
            usual is not None
            and type(observation) is np.ndarray
            and observation.dtype is usual.dtype
            and observation.shape == usual.shape
        ):
            # What a system in a hot loop passes: no cast, no view, and a finite sum of squares.
            columns[usual.name][row] = observation
            if not usual.is_vector or not observation.dot(observation) < _INFINITY:
                _require_finite(usual.spec, observation)
        elif isinstance(observation, Mapping):
            mask = self._write_named(columns, row, observation, mask)
        elif only is not None:
            _copy(only, columns[only.name][row : row + 1], as_array(observation))
        else:
            raise BadObservation(
                f"Got one {type(observation).__name__}; this policy sees {_listed(self._seen)}. Pass them by name."
            )
        if self._mask is not None:
            column = columns[MASK]
            if mask is None:
                column[row] = True
            else:
                _copy(self._mask, column[row : row + 1], as_array(mask) != 0)
        elif mask is not None:
            raise BadObservation(
                "Got a mask, but this policy was made without one. Set `action_mask: true` in the config (a new "
                "policy_id may be needed), or leave the mask out."
            )

    def _write_named(self, columns: Mapping[str, Array], row: int, observation: Mapping[str, Any], mask: Any) -> Any:
        """Returns the mask, which may be among the named arrays."""
        given = dict(observation)
        named_mask = given.pop(MASK, None)
        if given.keys() != {spec.name for spec in self._seen}:
            raise BadObservation(f"Got the arrays {sorted(given)}; this policy sees {_listed(self._seen)}.")
        for spec in self._seen:
            _copy(spec, columns[spec.name][row : row + 1], as_array(given[spec.name]))
        if mask is not None and named_mask is not None:
            raise BadObservation(f"Got a mask twice: as an argument and as '{MASK}'. Keep one.")
        return named_mask if mask is None else mask


def as_array(value: Any) -> Array:
    """An array, a list, a number, or a tensor of any library that can give one. No library is imported for it."""
    if type(value) is np.ndarray:
        return value
    if callable(getattr(value, "detach", None)):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise BadObservation(f"A {type(value).__name__} is no array of numbers: {error}.") from error


def _copy(spec: ArraySpec, row: Array, array: Array) -> None:
    # Shapes must be equal: broadcasting would hide a mistake.
    if array.shape != spec.shape:
        raise BadObservation(
            f"Got '{spec.name}' of shape {array.shape}; this policy sees {spec}. Reshape it, or change "
            f"`observation` in the config and choose another policy_id."
        )
    try:
        np.copyto(row[0, ...], array, casting="same_kind")
    except TypeError as error:
        if not _fits_unsigned(spec, row, array):
            raise BadObservation(f"Got '{spec.name}' as {array.dtype}, which does not fit into {spec}.") from error
    _require_finite(spec, row)


def _require_finite(spec: ArraySpec, array: Array) -> None:
    if array.dtype.kind == "f":
        # A sum of squares is finite unless a value is not, or all are huge: one cheap call for the common case.
        flat = array if array.ndim == 1 else array.ravel()
        if not flat.dot(flat) < _INFINITY and not np.isfinite(flat).all():
            raise BadObservation(f"'{spec.name}' contains NaN or infinity; leave such values out or replace them.")


def _fits_unsigned(spec: ArraySpec, row: Array, array: Array) -> bool:
    """Plain lists of whole numbers are signed; they may well be small enough for what has no sign."""
    if not spec.dtype.startswith("uint") or array.dtype.kind != "i":
        return False
    np.copyto(row[0, ...], array, casting="unsafe")
    return bool((row[0] == array).all())


def _listed(specs: Sequence[ArraySpec]) -> str:
    return ", ".join(map(str, specs))
