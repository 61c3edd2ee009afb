"""Copies observations (arrays, lists, numbers or tensors, alone or by name) into rows of a segment buffer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.client.candidate_rows import CandidateRows
from rl4sys.client.feature_defaults import default_row
from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import COUNT, MASK

_INFINITY = float("inf")


class BadObservation(ValueError):
    """An observation does not fit the policy. Nothing of it was recorded."""


def not_finite() -> BadObservation:
    """The error of an observation whose values are numbers, but for which the policy's decision is not."""
    return BadObservation(
        "The policy's decision for this observation is NaN or infinite: its values are too large. Scale or clip them."
    )


class _OnlyArray:
    """The only array that a policy observes, with precomputed properties for the check in every decision."""

    def __init__(self, spec: ArraySpec) -> None:
        self.spec, self.name, self.shape = spec, spec.name, spec.shape
        self.dtype = np.dtype(spec.dtype)
        self.is_vector = self.dtype.kind == "f" and len(spec.shape) == 1


class ObservationReader:
    """Copies an observation into one row of each array that a policy observes."""

    def __init__(
        self,
        specs: Sequence[ArraySpec],
        defaults: Mapping[str, Any] | None = None,
        on_default: Callable[[], object] = lambda: None,
    ) -> None:
        """`defaults`: what stands for arrays that an observation leaves out or has as None, and for features that are
        NaN. `on_default` is called for each observation that needs one."""
        self.candidates = CandidateRows.among(specs)
        """How candidates are read, if there are any."""
        hidden = (MASK,) if self.candidates is None else (MASK, COUNT)
        self._seen = [spec for spec in specs if spec.name not in hidden]
        self._only = self._seen[0] if len(self._seen) == 1 else None
        self._usual = None if self._only is None or self.candidates is not None else _OnlyArray(self._only)
        self._defaults = {
            spec.name: default_row(spec, defaults[spec.name])
            for spec in self._seen
            if defaults is not None and spec.name in defaults
        }
        self._on_default = on_default
        self._mask = next((spec for spec in specs if spec.name == MASK), None)

    def write(self, columns: Mapping[str, Array], row: int, observation: Any, mask: Any) -> None:
        """Copy into row `row`; without a mask every action is allowed."""
        usual, only = self._usual, self._only
        is_defaulted = False
        if (
            usual is not None
            and type(observation) is np.ndarray
            and observation.dtype is usual.dtype
            and observation.shape == usual.shape
        ):
            # The fast path for a system in a hot loop: no cast, no view, and a finite sum of squares.
            columns[usual.name][row] = observation
            if not usual.is_vector or not observation.dot(observation) < _INFINITY:
                is_defaulted = self._settle(usual.spec, columns[usual.name][row : row + 1])
        elif isinstance(observation, Mapping):
            mask, is_defaulted = self._write_named(columns, row, observation, mask)
        elif only is not None:
            is_defaulted = self._write_array(only, columns, row, observation)
        else:
            raise BadObservation(
                f"Got one {type(observation).__name__}; this policy observes {_listed(self._seen)}. Pass them by name."
            )
        if self._mask is not None:
            column = columns[MASK]
            if mask is None:
                column[row] = True
            else:
                allowed = as_array(mask) != 0
                if self.candidates is not None:
                    allowed = self.candidates.mask(columns, row, allowed)
                _copy(self._mask, column[row : row + 1], allowed)
        elif mask is not None:
            raise BadObservation(
                "Got a mask, but this policy was made without one. Set `action_mask: true` in the config (a new "
                "policy_id may be needed), or leave the mask out."
            )
        if is_defaulted:
            self._on_default()

    def plain_rows(self, rows: Any) -> str | None:
        """The array whose rows these are, ready to be copied: one array [N, …] of its dtype, finite. None otherwise."""
        usual = self._usual
        if usual is None or self._mask is not None or type(rows) is not np.ndarray:
            return None
        if rows.dtype is not usual.dtype or rows.shape[1:] != usual.shape or not usual.is_vector:
            return None
        return usual.name if _is_finite(rows) else None

    def _write_named(
        self, columns: Mapping[str, Array], row: int, observation: Mapping[str, Any], mask: Any
    ) -> tuple[Any, bool]:
        """Copy named arrays; returns the mask, which may be one of them, and whether a default was needed."""
        given = {name: value for name, value in observation.items() if value is not None}
        named_mask = given.pop(MASK, None)
        count = None if self.candidates is None else given.pop(COUNT, None)
        is_defaulted = len(given) < len(self._seen)
        if is_defaulted:
            given = self._defaults | given
        if given.keys() != {spec.name for spec in self._seen}:
            raise BadObservation(
                f"Got the arrays {sorted(given)}; this policy observes {_listed(self._seen)}. Add what is missing, or "
                f"name a value for it in `defaults`."
            )
        for spec in self._seen:
            is_defaulted |= self._write_array(spec, columns, row, given[spec.name])
        if self.candidates is not None and count is not None:
            problem = self.candidates.keep(columns, row, as_array(count))
            if problem is not None:
                raise BadObservation(problem)
        if mask is not None and named_mask is not None:
            raise BadObservation(f"Got a mask twice: as an argument and as '{MASK}'. Keep one.")
        return named_mask if mask is None else mask, is_defaulted

    def _write_array(self, spec: ArraySpec, columns: Mapping[str, Array], row: int, value: Any) -> bool:
        if self.candidates is not None and spec.name == self.candidates.name:
            if (problem := self.candidates.write(columns, row, as_array(value))) is not None:
                raise BadObservation(problem)
            return False
        place = columns[spec.name][row : row + 1]
        _copy(spec, place, as_array(value))
        return self._settle(spec, place)

    def _settle(self, spec: ArraySpec, row: Array) -> bool:
        """Replace NaN by the defaults of features that have one; returns whether there was any. Others are refused."""
        if row.dtype.kind != "f" or _is_finite(row):
            return False
        default = self._defaults.get(spec.name)
        if default is not None:
            np.copyto(row, default, where=np.isnan(row))
        if default is None or not _is_finite(row):
            raise BadObservation(
                f"'{spec.name}' contains NaN or infinity; leave such values out or replace them, or name values for "
                f"NaN in `defaults`."
            )
        return True


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


def _is_finite(array: Array) -> bool:
    # A sum of squares is finite unless a value is not, or all are huge: one cheap call for the common case.
    flat = array if array.ndim == 1 else array.ravel()
    return bool(flat.dot(flat) < _INFINITY) or bool(np.isfinite(flat).all())


def _fits_unsigned(spec: ArraySpec, row: Array, array: Array) -> bool:
    """Copy signed integers, such as those of a plain list, into an unsigned array if all of them fit."""
    if not spec.dtype.startswith("uint") or array.dtype.kind != "i":
        return False
    np.copyto(row[0, ...], array, casting="unsafe")
    return bool((row[0] == array).all())


def _listed(specs: Sequence[ArraySpec]) -> str:
    return ", ".join(map(str, specs))
