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
_FEW = 32
"""Below this many steps, plain Python draws faster than numpy does."""
_NOTHING = np.zeros((0, 1, 0), np.float32)
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
            self._block = _draw(self._keys, self._first, self._ahead, self._lanes, self._size)
            self._block.flags.writeable = False
            index = step - self._first
        return self._block[index]  # type: ignore[no-any-return]  # indexing an array of known rank


def noise_of(seed: int, streams: Sequence[StreamKey], steps: Sequence[int], size: int) -> Array:
    """The noise [streams, size] of one step of each stream, the same numbers as from `KeyedNoise`."""
    if len(streams) == 1 and size < _FEW:
        first, second = stream_key(seed, streams[0])
        return np.array([_uniform(first << 32 | second, steps[0], size)], np.float32)
    keys = np.array([stream_key(seed, stream) for stream in streams], np.uint64).T[:, None, :, None]
    return _uniform_rows(keys, np.array(steps, np.uint64)[None, :, None], size)[0]  # type: ignore[no-any-return]


def noise_rows(keys: Sequence[int], steps: Sequence[int], size: int) -> Array:
    """The noise [streams, size] of one step of each stream, drawn at once for many streams. `keys`: their `key`."""
    both = np.array(keys, np.uint64)
    words = np.stack([both >> _32, both & _LOW])[:, None, :, None]
    return _uniform_rows(words, np.array(steps, np.uint64)[None, :, None], size)[0]  # type: ignore[no-any-return]


class StreamNoise:
    """The noise of one stream, the same numbers as from `KeyedNoise`, for very many streams that live briefly.

    It begins with one step, of which it keeps nothing, and draws more ahead as long as steps follow each other.
    """

    __slots__ = ("_ahead", "_block", "_drawn", "_first", "_key", "_size")

    def __init__(self, seed: int, stream: StreamKey, size: int = 0) -> None:
        first, second = stream_key(seed, stream)
        self._key = first << 32 | second
        """Both words as one number, which is smaller."""
        self._size = size
        self._first = self._ahead = self._drawn = 0
        self._block: Array = _NOTHING

    @property
    def key(self) -> int:
        """Both words of the stream's key as one number."""
        return self._key

    def resize(self, size: int) -> None:
        """Give `size` numbers per step from now on."""
        if size != self._size:
            self._size = size
            self._forget()

    def at(self, step: int) -> Array:
        """The noise [1, size] of one step, read-only. Steps may be read in any order, repeatedly."""
        index = step - self._first
        if not 0 <= index < self._ahead:
            return self._draw(step, min(_AHEAD, 2 * self._drawn) if index == self._ahead and self._drawn else 1)
        return self._block[index]  # type: ignore[no-any-return]  # indexing an array of known rank

    def trim(self) -> None:
        """Forget what was drawn ahead, if it is much."""
        if self._ahead >= _FEW:
            self._forget()

    def _forget(self) -> None:
        self._ahead = self._drawn = 0
        self._block = _NOTHING

    def _draw(self, first: int, steps: int) -> Array:
        """Draw the noise of so many steps; returns that of the first one."""
        self._drawn = steps
        if steps == 1:
            row = np.array([_uniform(self._key, first, self._size)], np.float32)
            row.flags.writeable = False
            self._first, self._ahead, self._block = first + 1, 0, _NOTHING
            return row
        if steps < _FEW:
            rows = [_uniform(self._key, step, self._size) for step in range(first, first + steps)]
            block = np.array(rows, np.float32).reshape(steps, 1, self._size)
        else:
            keys = np.array(divmod(self._key, 1 << 32), np.uint64).reshape(2, 1, 1, 1)
            block = _draw(keys, first, steps, 1, self._size)
        block.flags.writeable = False
        self._first, self._ahead, self._block = first, steps, block
        return block[0]  # type: ignore[no-any-return]  # indexing an array of known rank


def _draw(keys: Array, first: int, ahead: int, lanes: int, size: int) -> Array:
    """Uniform numbers [ahead, lanes, size] of the steps from `first` on."""
    steps = np.arange(first, first + ahead, dtype=np.uint64)[:, None, None]
    return _uniform_rows(keys, np.broadcast_to(steps, (ahead, lanes, 1)), size)


def _uniform_rows(keys: Array, steps: Array, size: int) -> Array:
    """Uniform numbers [ahead, lanes, size] of the steps [ahead, lanes, 1]."""
    ahead, lanes, _ = steps.shape
    if size == 0:
        return np.zeros((ahead, lanes, 0), np.float32)
    blocks = -(-size // 4)
    counter = np.zeros((4, ahead, lanes, blocks), np.uint64)
    counter[0], counter[1] = steps & _LOW, steps >> _32
    counter[2] = np.arange(blocks, dtype=np.uint64)
    words = np.moveaxis(philox(counter, keys), 0, -1)
    uniform = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    return np.ascontiguousarray(uniform.reshape(ahead, lanes, 4 * blocks)[..., :size])


def _uniform(key: int, step: int, size: int) -> list[float]:
    """The uniform numbers of one step, in plain Python."""
    numbers: list[float] = []
    for block in range(-(-size // 4)):
        c0, c1, c2, c3 = step & 0xFFFFFFFF, step >> 32, block, 0
        k0, k1 = key >> 32, key & 0xFFFFFFFF
        for _ in range(_ROUNDS):
            product0, product1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c2 = (product1 >> 32) ^ c1 ^ k0, (product0 >> 32) ^ c3 ^ k1
            c1, c3 = product1 & 0xFFFFFFFF, product0 & 0xFFFFFFFF
            k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
        numbers += [(word >> 8) * 2.0**-24 for word in (c0, c1, c2, c3)]
    return numbers[:size]


def normal(uniform: Array) -> Array:
    """Standard normal numbers from pairs of uniform ones (Box–Muller in float64, rounded to float32).

    The last axis holds 2·k uniform numbers; the result has k: the pair (2·j, 2·j+1) gives number j.
    """
    radius = np.sqrt(-2.0 * np.log1p(-uniform[..., 0::2].astype(np.float64)))
    return (radius * np.cos(2.0 * np.pi * uniform[..., 1::2].astype(np.float64))).astype(np.float32)
