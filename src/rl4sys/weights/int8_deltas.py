"""What changed between two versions, in one byte per weight."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rl4sys.weights.layout import FLOAT32, Flat, Layout
from rl4sys.weights.packing import CorruptPayload, compress, decompress

CHUNK = 256
"""The most values that share a scale: the scales then cost a sixty-fourth of the quantised values."""

_CHUNK_COUNT = struct.Struct("<I")
_SMALLEST_NORMAL = np.finfo(np.float32).smallest_normal

Lengths = npt.NDArray[np.uint32]


def chunk_lengths(layout: Layout) -> Lengths:
    """How many values each scale covers.

    No chunk crosses tensors: where observation statistics move by hundreds, weights move by thousandths.
    """
    sizes = [math.prod(shape) for _, shape in layout.shapes]
    return np.array([min(CHUNK, size - at) for size in sizes for at in range(0, size, CHUNK)], "<u4")


@dataclass(frozen=True, slots=True)
class Int8Delta:
    """A quantised change: value i of chunk c changes by `scales[c] * quantised[i]`.

    Adding it is specified to the bit, so that every runtime reaches the same weights: `quantised` becomes
    float32 (exact), one float32 multiplication by the scale, one float32 addition to the base. Each rounds
    to nearest even and keeps subnormals; they are never fused (C++: `-ffp-contract=off`, no `-ffast-math`).
    """

    lengths: Lengths
    scales: Flat
    quantised: npt.NDArray[np.int8]

    @classmethod
    def between(cls, base: Flat, target: Flat, lengths: Lengths) -> Int8Delta:
        """The delta that takes `base` to within half a scale of `target`, but for float32 rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            change = target - base
        if not np.isfinite(change).all():
            raise ValueError(
                f"{np.count_nonzero(~np.isfinite(change))} weights became NaN or infinite, or jumped beyond "
                f"the range of float32, which int8 deltas cannot express. Find out why learning diverged; "
                f"a ModelStore ships such weights as they are."
            )
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        largest: Flat = np.maximum.reduceat(np.abs(change), starts)
        scales = largest / np.float32(127)
        # A subnormal scale has too few bits to divide by; so small a change waits until it has grown.
        scales[scales < _SMALLEST_NORMAL] = 0.0
        steps = np.zeros_like(change)
        divisors = np.repeat(scales, lengths)
        np.divide(change, divisors, out=steps, where=divisors > 0.0)
        quantised = np.clip(np.rint(steps), -127, 127).astype(np.int8)
        return cls(lengths, scales, quantised)

    def added_to(self, base: Flat) -> Flat:
        """The weights after this change, in exactly the operations that the class describes."""
        with np.errstate(over="ignore", invalid="ignore"):
            change = np.multiply(self.quantised.astype(FLOAT32), np.repeat(self.scales, self.lengths))
            return np.add(base, change)

    def pack(self) -> bytes:
        """Little-endian: uint32 chunk count, in a zstd frame uint32 lengths, float32 scales, int8 values."""
        content = self.lengths.tobytes() + self.scales.tobytes() + self.quantised.tobytes()
        return _CHUNK_COUNT.pack(len(self.lengths)) + compress(content)

    @classmethod
    def unpack(cls, payload: bytes, size: int) -> Int8Delta:
        """Read what `pack` wrote for `size` values, allocating no more than they can need."""
        if len(payload) < _CHUNK_COUNT.size:
            raise CorruptPayload(f"the payload has {len(payload)} bytes and lacks its chunk count")
        (chunks,) = _CHUNK_COUNT.unpack_from(payload)
        if chunks > size:
            raise CorruptPayload(f"the payload states {chunks} chunks for {size} values")
        content = decompress(payload[_CHUNK_COUNT.size :], 8 * chunks + size)
        lengths = np.frombuffer(content, "<u4", chunks)
        if int(lengths.sum(dtype=np.uint64)) != size:
            raise CorruptPayload(f"the chunks cover {lengths.sum(dtype=np.uint64)} values; expected {size}")
        scales = np.frombuffer(content, FLOAT32, chunks, offset=4 * chunks)
        return cls(lengths, scales, np.frombuffer(content, np.int8, size, offset=8 * chunks))
