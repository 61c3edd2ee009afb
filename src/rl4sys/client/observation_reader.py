"""Copies observations (arrays, lists, numbers or tensors, alone or by name) into rows of a segment buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import MASK

_INFINITY = float("inf")


class BadObservation(ValueError):
    """An observation does not fit the policy. Nothing of it was recorded."""


class _OnlyArray:
    """The only array that a policy observes, with precomputed properties for the check in every decision."""

    def __init__(self, spec: ArraySpec) -> None:
        self.spec, self.name, self.shape = spec, spec.name, spec.shape
        self.dtype = np.dtype(spec.dtype)
        self.is_vector = self.dtype.kind == "f" and len(spec.shape) == 1


class ObservationReader:
    """Copies an observation into one row of each array that a policy observes."""

    def __init__(self, specs: Sequence[ArraySpec], defaults: Mapping[str, Any] | None = None) -> None:
        """`defaults`: what named arrays contain that an observation leaves out, or has as None."""
        self._seen = [spec for spec in specs if spec.name != MASK]
        self._only = self._seen[0] if len(self._seen) == 1 else None
        self._usual = None if self._only is None else _OnlyArray(self._only)
        self._defaults = {
            spec.name: np.broadcast_to(np.asarray(defaults[spec.name], spec.dtype), spec.shape)
            for spec in self._seen
            if defaults is not None and spec.name in defaults
        }
        self._mask = next((spec for spec in specs if spec.name == MASK), None)

    def write(self, columns: Mapping[str, Array], row: int, observation: Any, mask: Any) -> None:
        """Copy into row `row`; without a mask every action is allowed."""
        usual, only = self._usual, self._only
        if (
            usual is not None
            and type(observation) is np.ndarray
            and observation.dtype is usual.dtype
            and observation.shape == usual.shape
        ):
            # The fast path for a system in a hot loop: no cast, no view, and a finite sum of squares.
            columns[usual.name][row] = observation
            if not usual.is_vector or not observation.dot(observation) < _INFINITY:
                _require_finite(usual.spec, observation)
        elif isinstance(observation, Mapping):
            mask = self._write_named(columns, row, observation, mask)
        elif only is not None:
            _copy(only, columns[only.name][row : row + 1], as_array(observation))
        else:
            raise BadObservation(
                f"Got one {type(observation).__name__}; this policy observes {_listed(self._seen)}. Pass them by name."
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
        """Copy named arrays; returns the mask, which may be one of them."""
        given = {name: value for name, value in observation.items() if value is not None}
        named_mask = given.pop(MASK, None)
        if len(given) < len(self._seen):
            given = self._defaults | given
        if given.keys() != {spec.name for spec in self._seen}:
            raise BadObservation(
                f"Got the arrays {sorted(given)}; this policy observes {_listed(self._seen)}. Add what is missing, or "
                f"name a value for it in `defaults`."
            )
        for spec in self._seen:
            _copy(spec, columns[spec.name][row : row + 1], as_array(given[spec.name]))
        if mask is not None and named_mask is not None:
            raise BadObservation(f"Got a mask twice: as an argument and as '{MASK}'. Keep one.")
        return named_mask if mask is None else mask


def as_array(value: Any) -> Array:
    """Any array, list, number or tensor as a numpy array, without importing the library it comes from."""
    if type(value) is np.ndarray:
        return value
    if callable(getattr(value, "detach", None)):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise BadObservation(f"Got a {type(value).__name__}, which is not an array of numbers: {error}.") from error


def _copy(spec: ArraySpec, row: Array, array: Array) -> None:
    # Shapes must be equal: broadcasting would hide a mistake.
    if array.shape != spec.shape:
        raise BadObservation(
            f"Got '{spec.name}' of shape {array.shape}; this policy observes {spec}. Reshape it, or change "
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
    """Copy signed integers, such as those of a plain list, into an unsigned array if all of them fit."""
    if not spec.dtype.startswith("uint") or array.dtype.kind != "i":
        return False
    np.copyto(row[0, ...], array, casting="unsafe")
    return bool((row[0] == array).all())


def _listed(specs: Sequence[ArraySpec]) -> str:
    return ", ".join(map(str, specs))
