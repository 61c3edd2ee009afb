"""Packs weights for the wire, and unpacks them without trusting them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import zstandard

# Higher levels search for repetitions, which weights do not have: three times the work for the same size.
_LEVEL = 1


class CorruptPayload(ValueError):
    """A packed payload is damaged."""


def compress(data: bytes) -> bytes:
    """One zstd frame that states the size of its content."""
    return zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)


def decompress(payload: bytes, size: int) -> bytes:
    """The content of one zstd frame, which must be exactly `size` bytes: nothing else is ever allocated."""
    try:
        stated = zstandard.frame_content_size(payload)
        if stated != size:
            raise CorruptPayload(f"the payload states {stated} bytes of content; expected {size}")
        return zstandard.ZstdDecompressor().decompress(payload, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CorruptPayload(f"the payload of {len(payload)} bytes is not a zstd frame: {error}") from error


def to_planes(words: npt.NDArray[np.uint32]) -> bytes:
    """All lowest bytes, then all second bytes, and so on: signs and exponents lie together and compress."""
    return words.view(np.uint8).reshape(-1, 4).T.tobytes()


def from_planes(planes: bytes) -> npt.NDArray[np.uint32]:
    """Undo `to_planes`; the words are read-only."""
    return np.frombuffer(np.frombuffer(planes, np.uint8).reshape(4, -1).T.tobytes(), "<u4")
