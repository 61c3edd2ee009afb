"""Keyed noise: random numbers by seed, stream and step, the same in every language.

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). The key is the first
eight bytes, as two little-endian words, of SHA-256 over seed, client, agent and lane, joined by the unit
separator (0x1f). The counter is (step low, step high, block, 0). Each counter gives four 32-bit words; word w
of block b is number 4·b + w of that step, and its upper 24 bits are the fraction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from rl4sys.experience import Array, StreamKey

_MULTIPLIERS = np.array([0xD2511F53, 0xCD9E8D57], np.uint64)
_KEY_STEPS = np.array([0x9E3779B9, 0xBB67AE85], np.uint64)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ROUNDS = 10
_AHEAD = 1024
"""Steps whose noise is drawn at once, so that one decision in a thousand pays for a vectorised draw."""
_AT_ONCE = 4096
"""Most rows (streams × steps) of one draw, so that many streams do not take much memory."""


def philox(counter: Array, key: Array) -> Array:
    """Four random 32-bit words, as uint64 [4, …], from a counter [4, …] and a key [2, …] of 32-bit words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0, product1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c2 = (product1 >> _32) ^ c1 ^ k0, (product0 >> _32) ^ c3 ^ k1
        c1, c3 = product1 & _LOW, product0 & _LOW
        k0, k1 = (k0 + _KEY_STEPS[0]) & _LOW, (k1 + _KEY_STEPS[1]) & _LOW
    return np.stack([c0, c1, c2, c3])


def stream_key(seed: int, stream: StreamKey) -> tuple[int, int]:
    """The two key words of a stream."""
    text = "\x1f".join((str(seed), stream.client, stream.agent, str(stream.lane)))
    first, second = np.frombuffer(hashlib.sha256(text.encode()).digest()[:8], "<u4")
    return int(first), int(second)


class KeyedNoise:
    """Uniform numbers in [0, 1) with 24 bits, `size` per stream and step, drawn ahead in blocks."""

    def __init__(self, seed: int, streams: Sequence[StreamKey], size: int) -> None:
        self._keys = np.array([stream_key(seed, stream) for stream in streams], np.uint64).T[:, None, :, None]
        self._lanes = len(streams)
        self._size = size
        self._ahead = max(1, min(_AHEAD, _AT_ONCE // max(1, self._lanes)))
        self._first = -1
        self._block = np.zeros((0, self._lanes, size), np.float32)

    def at(self, step: int) -> Array:
        """The noise [streams, size] of one step, read-only. Steps may be read in any order, repeatedly."""
        index = step - self._first
        if not 0 <= index < self._ahead or self._first < 0:
            self._first = step - step % self._ahead
            self._block = self._draw(self._first)
            self._block.flags.writeable = False
            index = step - self._first
        return self._block[index]  # type: ignore[no-any-return]  # indexing an array of known rank

    def _draw(self, first: int) -> Array:
        if self._size == 0:
            return np.zeros((self._ahead, self._lanes, 0), np.float32)
        blocks = -(-self._size // 4)
        counter = np.zeros((4, self._ahead, self._lanes, blocks), np.uint64)
        steps = np.arange(first, first + self._ahead, dtype=np.uint64)[:, None, None]
        counter[0], counter[1] = steps & _LOW, steps >> _32
        counter[2] = np.arange(blocks, dtype=np.uint64)
        words = np.moveaxis(philox(counter, self._keys), 0, -1)
        uniform = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
        return np.ascontiguousarray(uniform.reshape(self._ahead, self._lanes, 4 * blocks)[..., : self._size])


def normal(uniform: Array) -> Array:
    """Standard normal numbers from pairs of uniform ones (Box–Muller in float64, rounded to float32).

    The last axis holds 2·k uniform numbers; the result has k: the pair (2·j, 2·j+1) gives number j.
    """
    radius = np.sqrt(-2.0 * np.log1p(-uniform[..., 0::2].astype(np.float64)))
    return (radius * np.cos(2.0 * np.pi * uniform[..., 1::2].astype(np.float64))).astype(np.float32)
