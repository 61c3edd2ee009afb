"""Keyed noise in plain Python integers: the published answers of Philox, keys of streams, and their numbers."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

import numpy as np

Words = tuple[int, ...]

PUBLISHED: tuple[tuple[Words, Words, Words], ...] = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
"""Counter, key and answer of the known-answer tests of Random123 for philox4x32-10."""

STREAMS = (
    (0, "client", "agent", 0),
    (0, "client", "agent", 1),
    (1, "client", "agent", 0),
    (2**63 - 1, "büro-7", "left/arm", 12),
)
STEPS = (0, 1, 2, 255, 256, 1_000_000, 2**32 - 1, 2**32, 2**40 + 3)
SIZE = 6


def noise_cases() -> dict[str, Any]:
    """The contents of noise.json."""
    for counter, key, words in PUBLISHED:
        if philox(counter, key) != words:
            raise ValueError(f"Philox of {counter} with {key} is {philox(counter, key)}, published is {words}.")
    return {
        "philox": [{"counter": counter, "key": key, "words": words} for counter, key, words in PUBLISHED],
        "streams": [_stream(*stream) for stream in STREAMS],
    }


def philox(counter: Words, key: Words) -> Words:
    """Philox4x32-10."""
    (a, b, c, d), (left, right) = counter, key
    for _ in range(10):
        first, second = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (
            (second >> 32) ^ b ^ left,
            second & 0xFFFFFFFF,
            (first >> 32) ^ d ^ right,
            first & 0xFFFFFFFF,
        )
        left, right = (left + 0x9E3779B9) & 0xFFFFFFFF, (right + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def _stream(seed: int, client: str, agent: str, lane: int) -> dict[str, Any]:
    text = f"{seed}\x1f{client}\x1f{agent}\x1f{lane}"
    key = struct.unpack("<2I", hashlib.sha256(text.encode("utf-8")).digest()[:8])
    steps = [{"step": step} | _numbers(key, step) for step in STEPS]
    stream = {"seed": seed, "client": client, "agent": agent, "lane": lane}
    return stream | {"key": key, "size": SIZE, "steps": steps}


def _numbers(key: Words, step: int) -> dict[str, list[float]]:
    words = [w for block in range(2) for w in philox((step & 0xFFFFFFFF, step >> 32, block, 0), key)]
    uniform = [(word >> 8) / 2**24 for word in words[:SIZE]]
    pairs = zip(uniform[0::2], uniform[1::2], strict=True)
    normal = [math.sqrt(-2.0 * math.log1p(-u)) * math.cos(2.0 * math.pi * v) for u, v in pairs]
    return {"uniform": uniform, "normal": [float(np.float32(number)) for number in normal]}


def same(found: Any, expected: Any) -> bool:
    """Whether two trees of names and numbers agree, floats up to the last bits of float32."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[name], expected[name]) for name in expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)
    return bool(found == expected)
