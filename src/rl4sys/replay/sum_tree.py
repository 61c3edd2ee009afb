"""A sum tree: draws in proportion to values that change often."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Array

FAN_OUT = 32
TOP = 1024
"""The highest level has at most this many nodes, which are searched all at once."""


class SumTree:
    """A wide tree over values ≥ 0, in which each node is the sum of its 32 children.

    A node is always recomputed from its children and never incremented: rounding errors cannot accumulate, and
    a tree built from the same leaves is the same to the bit.
    """

    def __init__(self, size: int) -> None:
        self._levels = [np.zeros(_padded(size), np.float64)]
        while len(self._levels[-1]) > TOP:
            self._levels.append(np.zeros(_padded(len(self._levels[-1]) // FAN_OUT), np.float64))
        self._blocks = [level.reshape(-1, FAN_OUT) for level in self._levels]

    @staticmethod
    def size(leaves: int) -> int:
        """Bytes of a tree with this many leaves."""
        nodes = width = _padded(leaves)
        while width > TOP:
            width = _padded(width // FAN_OUT)
            nodes += width
        return 8 * nodes

    def values(self, leaves: Array | slice) -> Array:
        """The values of these leaves."""
        return self._levels[0][leaves]

    def put(self, leaves: Array, values: Array) -> None:
        """Set scattered leaves. If a leaf is given twice, the last value counts."""
        self._levels[0][leaves] = values
        nodes = leaves
        for blocks, above in zip(self._blocks, self._levels[1:], strict=False):
            nodes = nodes // FAN_OUT
            above[nodes] = blocks.take(nodes, axis=0, mode="clip").sum(axis=1)

    def fill(self, leaves: slice, values: Array | float) -> None:
        """Set consecutive leaves."""
        self._levels[0][leaves] = values
        first, last = leaves.start, leaves.stop
        for blocks, above in zip(self._blocks, self._levels[1:], strict=False):
            first, last = first // FAN_OUT, (last - 1) // FAN_OUT + 1
            above[first:last] = blocks[first:last].sum(axis=1)

    def find(self, shares: Array) -> Array:
        """The leaves at these shares [B] of the total, from 0 to 1. A leaf of value 0 is never found."""
        cumulative = np.zeros(len(self._levels[-1]) + 1)
        np.cumsum(self._levels[-1], out=cumulative[1:])
        # At most just below the sum: rounding could place a target after the last value.
        target = np.minimum(shares * cumulative[-1], np.nextafter(cumulative[-1], 0.0))
        node: Array = np.searchsorted(cumulative[1:], target, side="right")
        target -= cumulative[node]
        row = np.arange(len(shares))
        cumulative = np.zeros((len(shares), FAN_OUT + 1))
        for blocks in self._blocks[-2::-1]:
            np.cumsum(blocks.take(node, axis=0, mode="clip"), axis=1, out=cumulative[:, 1:])
            target = np.minimum(target, np.nextafter(cumulative[:, -1], 0.0))
            child = (cumulative[:, 1:] > target[:, None]).argmax(axis=1)
            target -= cumulative[row, child]
            node = node * FAN_OUT + child
        return node


def _padded(size: int) -> int:
    return -(-size // FAN_OUT) * FAN_OUT
