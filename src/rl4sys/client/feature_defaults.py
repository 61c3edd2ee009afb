"""Defaults of observations: what stands for an array that is left out, and for single features that are NaN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.client.section import Section, SettingsError, shown
from rl4sys.client.spaces import OBSERVATION, is_one_array
from rl4sys.experience import Array, ArraySpec


def feature_defaults(given: Any, observation: Any, specs: tuple[ArraySpec, ...]) -> dict[str, Any]:
    """The defaults by array, from the setting `defaults` and from `default` in the setting `observation`."""
    part = Section({} if given is None else given, "defaults")
    defaults = {spec.name: part.raw(spec.name) for spec in specs if spec.name in part}
    if specs:
        part.finish([spec.name for spec in specs])
    described = {OBSERVATION: observation} if is_one_array(observation) else observation
    for name, array in described.items():
        if isinstance(array, Mapping) and array.get("default") is not None:
            if name in defaults:
                raise SettingsError(f"defaults.{name}: 'observation' has a default for it, too. Keep one of them.")
            defaults[name] = array["default"]
    for spec in specs:
        if spec.name in defaults:
            default_row(spec, defaults[spec.name])
    return defaults | part.rest()


def default_row(spec: ArraySpec, value: Any) -> Array:
    """The default of an array in its own shape; NaN for features that have none."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        numbers = np.full(1, np.inf)
    is_complete = bool(np.isfinite(numbers).all())
    is_partial = spec.dtype.startswith("float") and numbers.shape == spec.shape and not np.isinf(numbers).any()
    if numbers.shape not in ((), spec.shape) or not (is_complete or is_partial):
        raise SettingsError(
            f"defaults.{spec.name}: got {shown(value)}; expected a finite number, or a list of them for {spec}, with "
            f"null for features without a default."
        )
    return np.broadcast_to(numbers.astype(spec.dtype), spec.shape)
