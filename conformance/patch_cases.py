"""Patches in every encoding with the weights they lead to, and patches that must be refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from vectors import Array, array_entries, read_arrays

from rl4sys.weights import Encoding, Patch, PatchMismatch, apply_patch

SIZE = 3_000
BASE, TARGET = 6, 7


@dataclass(frozen=True, slots=True)
class PatchCase:
    """A patch, the weights it starts from, and those it leads to; without a result it must be refused."""

    name: str
    patch: Patch
    base: Array
    result: Array | None


def patch_cases() -> list[PatchCase]:
    """Every encoding, then damaged and foreign patches."""
    rng = np.random.RandomState(20_010)
    base = rng.standard_normal(SIZE).astype(np.float32)
    # Signed zeros, subnormals, both ends of the range, and NaN: patches preserve every bit.
    base[:8] = (0.0, -0.0, 1e-45, -1e-40, 3e38, -3e38, np.inf, np.nan)
    result = base.copy()
    result[::3] += rng.standard_normal(SIZE // 3).astype(np.float32) * np.float32(1e-3)
    applied = list(_lossless(base, result))
    return applied + [PatchCase(name, patch, base, None) for name, patch in _broken(applied)]


def _lossless(base: Array, result: Array) -> Iterator[PatchCase]:
    raw = result.tobytes()
    difference = (base.view(np.uint32) ^ result.view(np.uint32)).tobytes()
    payloads = {Encoding.RAW: raw, Encoding.PLANES: _frame(_planes(raw)), Encoding.XOR: _frame(_planes(difference))}
    for encoding, payload in payloads.items():
        start = BASE if encoding is Encoding.XOR else None
        patch = Patch(start, TARGET, encoding, payload, hashlib.sha256(raw).digest(), SIZE)
        yield PatchCase(encoding.name.lower(), patch, base, result)


def _broken(applied: list[PatchCase]) -> Iterator[tuple[str, Patch]]:
    for case in applied:
        patch = case.patch
        yield f"{case.name}_cut", replace(patch, payload=patch.payload[:-1])
        yield f"{case.name}_longer", replace(patch, payload=patch.payload + b"\0")
        yield f"{case.name}_empty", replace(patch, payload=b"")
        yield f"{case.name}_digest", replace(patch, sha256=bytes(32))
        yield f"{case.name}_size", replace(patch, size=SIZE + 1)
    raw, planes, _ = (case.patch for case in applied)
    yield "raw_changed", replace(raw, payload=bytes([raw.payload[0] ^ 1]) + raw.payload[1:])
    yield "planes_two_frames", replace(planes, payload=planes.payload + _frame(b"more"))
    yield "planes_larger", replace(planes, payload=_frame(bytes(4 * SIZE + 4)))
    yield "planes_bomb", replace(planes, payload=_frame(bytes(1 << 24)))


def _planes(words: bytes) -> bytes:
    return b"".join(words[place::4] for place in range(4))


def _frame(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_content_size=True).compress(content)


def write_patches(path: Path, cases: list[PatchCase]) -> None:
    """Write `path`.json and `path`.bin. Refused patches need no base beside their payload."""
    data, lines = bytearray(), []
    for case in cases:
        arrays = {"payload": np.frombuffer(case.patch.payload, np.uint8)}
        arrays |= {} if case.result is None else {"base": case.base, "result": case.result}
        lines.append(json.dumps(_header(case) | {"arrays": array_entries(arrays, data)}))
    path.with_suffix(".json").write_text(f'{{"file": "{path.name}.bin", "cases": [\n' + ",\n".join(lines) + "\n]}\n")
    path.with_suffix(".bin").write_bytes(data)


def _header(case: PatchCase) -> dict[str, Any]:
    patch = case.patch
    return {
        "name": case.name,
        "base": patch.base,
        "target": patch.target,
        "encoding": int(patch.encoding),
        "size": patch.size,
        "sha256": patch.sha256.hex(),
        "refused": case.result is None,
    }


def patch_differences(path: Path, expected: list[PatchCase]) -> Iterator[str]:
    """Differences from the expected cases. Releases of zstd may pack differently, so payloads are applied instead."""
    index = json.loads(path.with_suffix(".json").read_text())
    data = path.with_name(index["file"]).read_bytes()
    if [entry["name"] for entry in index["cases"]] != [case.name for case in expected]:
        yield "the cases have other names"
        return
    for entry, case in zip(index["cases"], expected, strict=True):
        arrays = read_arrays(data, entry["arrays"])
        if {name: entry[name] for name in _header(case)} != _header(case):
            yield f"{case.name}: the header differs"
        if case.result is not None and arrays["base"].tobytes() != case.base.tobytes():
            yield f"{case.name}: the base differs"
        patch = replace(case.patch, payload=arrays["payload"].tobytes())
        try:
            found = apply_patch(case.base, patch, SIZE)
        except PatchMismatch:
            found = None
        if (None if found is None else found.tobytes()) != (None if case.result is None else case.result.tobytes()):
            yield f"{case.name}: applying it gives something else"
