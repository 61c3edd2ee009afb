"""Patches: turn one version of the weights into another."""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rl4sys.weights.layout import FLOAT32, Flat, require_flat
from rl4sys.weights.packing import CorruptPayload, compress, decompress, from_planes, to_planes
from rl4sys.weights.versions import Version, read_only_copy


class PatchMismatch(ValueError):
    """A patch cannot be applied to the present weights, or does not give the version it names."""


class Encoding(enum.IntEnum):
    """What a payload holds. Numbers never change; on the wire 0 means "unspecified" and 4 is reserved."""

    RAW = 1
    """The blob, uncompressed."""
    PLANES = 2
    """The blob in byte planes, compressed."""
    XOR = 3
    """The bits that differ from the base, in byte planes, compressed."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Turns version `base` into version `target`; without a base it is a full copy."""

    base: int | None
    target: int
    encoding: Encoding
    payload: bytes
    sha256: bytes
    """SHA-256 of the resulting blob."""
    size: int
    """How many floats the resulting blob has."""


def make_patch(base: Version | None, target: Version) -> Patch:
    """The smallest lossless patch; a full copy where that is smaller or there is no base."""
    raw = target.blob.tobytes()
    candidates = [(Encoding.RAW, raw), (Encoding.PLANES, compress(to_planes(_bits(target.blob))))]
    if base is not None:
        require_flat(base.blob, target.blob.size)
        candidates.append((Encoding.XOR, compress(to_planes(_bits(base.blob) ^ _bits(target.blob)))))
    encoding, payload = min(candidates, key=lambda candidate: len(candidate[1]))
    base_number = base.number if base is not None and encoding is Encoding.XOR else None
    return Patch(base_number, target.number, encoding, payload, target.sha256, target.blob.size)


def apply_patch(base: Flat | None, patch: Patch, size: int) -> Flat:
    """The weights of version `patch.target`, read-only and verified; a full copy ignores `base`.

    `size` is how many floats the receiver's own layout has. It bounds what a patch can allocate.
    """
    if patch.size != size:
        raise _mismatch(patch, f"it is for {patch.size} weights, but this policy has {size}")
    try:
        result = _decode(base, patch)
    except CorruptPayload as error:
        raise _mismatch(patch, str(error)) from error
    if hashlib.sha256(result.data).digest() != patch.sha256:
        raise _mismatch(patch, "the result has another SHA-256 than the published version")
    return result


def _decode(base: Flat | None, patch: Patch) -> Flat:
    match patch.encoding:
        case Encoding.RAW:
            if len(patch.payload) != 4 * patch.size:
                raise CorruptPayload(f"the payload has {len(patch.payload)} bytes; expected {4 * patch.size}")
            return np.frombuffer(bytes(patch.payload), FLOAT32)
        case Encoding.PLANES:
            return from_planes(decompress(patch.payload, 4 * patch.size)).view(FLOAT32)
        case Encoding.XOR:
            difference = from_planes(decompress(patch.payload, 4 * patch.size))
            return read_only_copy((_bits(_require_base(base, patch)) ^ difference).view(FLOAT32))


def _require_base(base: Flat | None, patch: Patch) -> Flat:
    if base is None:
        raise _mismatch(patch, "it needs a base, and there is none")
    require_flat(base, patch.size)
    return base


def _bits(blob: Flat) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(blob).view("<u4")


def _mismatch(patch: Patch, problem: str) -> PatchMismatch:
    origin = "a full copy" if patch.base is None else f"version {patch.base}"
    return PatchMismatch(
        f"Cannot make version {patch.target} from {origin}: {problem}. "
        f"Keep acting with the present weights and pull in full (have=None)."
    )
