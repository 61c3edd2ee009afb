"""Observations and masks of programs for the original RL4Sys, which may come as a batch of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl4sys.client.observation_reader import as_array
from rl4sys.experience import ArraySpec
from rl4sys.policy import MASK


class OriginalInputs:
    """Takes leading axes of size 1 away that the policy does not have."""

    def __init__(self, specs: Sequence[ArraySpec]) -> None:
        self._shapes = {spec.name: spec.shape for spec in specs if spec.name != MASK}
        self._only = next(iter(self._shapes.values())) if len(self._shapes) == 1 else None
        self._mask = next((spec.shape for spec in specs if spec.name == MASK), None)

    def observation(self, obs: Any) -> Any:
        """The observation as the policy reads it."""
        shapes, only = self._shapes, self._only
        if isinstance(obs, dict):
            return {name: _squeezed(part, shapes[name]) if name in shapes else part for name, part in obs.items()}
        return obs if only is None else _squeezed(obs, only)

    def mask(self, mask: Any) -> Any:
        """The mask as the policy reads it."""
        return mask if self._mask is None else _squeezed(mask, self._mask)


def _squeezed(value: Any, shape: tuple[int, ...]) -> Any:
    if value is None or getattr(value, "shape", None) == shape or _is_vector(value, shape):
        # What has its shape already is read without a detour.
        return value
    array = as_array(value)
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    return array


def _is_vector(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether this is a list of as many numbers as the only axis has."""
    is_list = type(value) is list or type(value) is tuple
    return is_list and len(shape) == 1 and len(value) == shape[0] > 0 and isinstance(value[0], float | int)
