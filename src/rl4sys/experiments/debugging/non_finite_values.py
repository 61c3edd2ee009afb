"""Finds NaN, Inf and huge values in batches, weights and gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rl4sys.engine import Algorithm
from rl4sys.experience import Array
from rl4sys.networks import NonFiniteUpdate

_SHOWN = 3
_TOO_LARGE = 1e15
"""Sums of squares of larger numbers soon overflow float32."""


def non_finite_values(algorithm: Algorithm, batch: Any, error: NonFiniteUpdate) -> list[str]:
    """What is not finite or too large, from what comes first: the batch, the weights, then the gradients."""
    return [*_in_batch(batch), *_in_weights(algorithm), *(f"gradient of {name}" for name in error.tensors)]


def columns(batch: Any) -> Iterator[tuple[str, Array]]:
    """The arrays of a batch by name."""
    if not dataclasses.is_dataclass(batch):
        return
    for field in dataclasses.fields(batch):
        value = getattr(batch, field.name)
        if isinstance(value, Mapping):
            yield from ((f"{field.name}.{name}", np.asarray(array)) for name, array in value.items())
        elif isinstance(value, np.ndarray):
            yield field.name, value


def _in_batch(batch: Any) -> Iterator[str]:
    for name, array in columns(batch):
        if array.dtype.kind != "f":
            continue
        places = np.argwhere(_is_wrong(array))
        if len(places):
            shown = ", ".join(f"[{', '.join(map(str, place))}] is {array[tuple(place)]}" for place in places[:_SHOWN])
            more = ", …" if len(places) > _SHOWN else ""
            yield f"batch {name}: {len(places)} of {array.size} numbers ({shown}{more})"


def _in_weights(algorithm: Algorithm) -> Iterator[str]:
    for group, parameters in algorithm.train_state.parameters():
        for name, view in parameters.views.items():
            wrong = int(_is_wrong(view.detach().cpu().numpy()).sum())
            if wrong:
                yield f"weights of {group}, {name}: {wrong} of {view.numel()} numbers"


def _is_wrong(array: Array) -> Array:
    """Where numbers are not finite, or too large."""
    wrong: Array = ~(np.abs(array) < _TOO_LARGE)
    return wrong
