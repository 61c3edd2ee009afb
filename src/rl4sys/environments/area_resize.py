"""Area resizing of grey images, equal to the bit to OpenCV's INTER_AREA, which the literature on Atari uses."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array


class AreaResize:
    """Shrinks grey images to a square; each new pixel is the mean of the area that it covers.

    Weights, order of the sums and rounding are those of OpenCV, so ties round equally. Screens of games change little
    from one to the next: only rows that changed since the last image are computed again.
    """

    def __init__(self, height: int, width: int, size: int) -> None:
        if not 1 <= size <= min(height, width):
            raise ValueError(f"Images of {height} × {width} pixels cannot be shrunk to {size} × {size}.")
        self._columns, self._rows = _shares(width, size), _shares(height, size)
        self._last: Array = np.zeros((height, width), np.uint8)
        self._narrow: Array = np.zeros((height, size), np.float32)
        """The last image, shrunk in width only."""
        self._small: Array = np.zeros((size, size), np.uint8)
        self._first: Array = np.arange(height) * size // height
        """The first row of the result that a row of the image is a part of; the only other one may be the next."""

    def __call__(self, image: Array) -> Array:
        """From uint8 [height, width] to uint8 [size, size], which is valid until the next call."""
        changed = (image != self._last).any(axis=1).nonzero()[0]
        if len(changed):
            rows = image.take(changed, axis=0)
            self._last[changed] = rows
            self._narrow[changed] = _summed(rows.T.astype(np.float32), self._columns).T
            first = self._first.take(changed)
            is_touched = np.zeros(len(self._small) + 1, bool)
            is_touched[first] = is_touched[first + 1] = True
            touched = is_touched[:-1].nonzero()[0]
            shares = _Shares(self._rows.source.take(touched, axis=1), self._rows.weight.take(touched, axis=1))
            self._small[touched] = np.rint(_summed(self._narrow, shares))
        return self._small


class _Shares(NamedTuple):
    """Which old pixels a new one is the sum of, each with its weight."""

    source: Array
    """[most, size] places of old pixels, in the order of the sum."""
    weight: Array
    """[most, size] float32; 0 where a new pixel covers fewer old ones than others do."""


def _summed(pixels: Array, shares: _Shares) -> Array:
    """Weighted sums over the first axis: float32 [old, …] to [new, …]."""
    products = pixels.take(shares.source, axis=0)
    products *= shares.weight[:, :, None]
    # Along the first axis numpy adds one after the other, as OpenCV does.
    return np.asarray(np.add.reduce(products, axis=0))


def _shares(length: int, size: int) -> _Shares:
    """How old pixels share in new ones along one axis. Slivers below a thousandth of a pixel are left out."""
    scale = length / size
    parts: list[list[tuple[int, float]]] = []
    for place in range(size):
        start, end = place * scale, (place + 1) * scale
        cell = min(scale, length - start)
        last = min(math.floor(end), length - 1)
        first = min(math.ceil(start), last)
        part = [(first - 1, (first - start) / cell)] if first - start > 1e-3 else []
        part += [(old, 1.0 / cell) for old in range(first, last)]
        if end - last > 1e-3:
            part.append((last, min(end - last, 1.0, cell) / cell))
        parts.append(part)
    most = max(map(len, parts))
    # The filling adds 0 times a pixel that is there anyway, which changes no sum.
    filled = [part + [(part[-1][0], 0.0)] * (most - len(part)) for part in parts]
    source = np.array([[old for old, _ in part] for part in filled]).T
    return _Shares(source, np.array([[weight for _, weight in part] for part in filled], np.float32).T)
