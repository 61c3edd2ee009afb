"""Patches to and from the chunks in which they are streamed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rl4sys.weights import Encoding, Patch
from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import weights_pb2
from rl4sys.wire.message_sizes import PATCH_CHUNK_BYTES

_LARGEST = (1 << 63) - 1
_SHA256_BYTES = 32
_FULL_COPIES = (Encoding.RAW, Encoding.PLANES)
_ENCODINGS = {encoding.value: encoding for encoding in Encoding}


def encode_patch(patch: Patch, chunk_bytes: int = PATCH_CHUNK_BYTES) -> Iterator[weights_pb2.PatchChunk]:
    """The chunks to stream: at least one, and the first has the header."""
    header = weights_pb2.PatchHeader(
        base=patch.base,
        target=patch.target,
        encoding=f"PATCH_ENCODING_{patch.encoding.name}",
        size=patch.size,
        sha256=patch.sha256,
        payload_bytes=len(patch.payload),
    )
    yield weights_pb2.PatchChunk(header=header, payload=patch.payload[:chunk_bytes])
    for at in range(chunk_bytes, len(patch.payload), chunk_bytes):
        yield weights_pb2.PatchChunk(payload=patch.payload[at : at + chunk_bytes])


def decode_patch(chunks: Iterable[weights_pb2.PatchChunk], size: int) -> Patch:
    """The patch in a stream of chunks, or `ContractViolation`.

    `size` is the number of floats in the receiver's own layout: it bounds what is collected. `apply_patch` compares the
    SHA-256 of the result with that of the published weights.
    """
    header: weights_pb2.PatchHeader | None = None
    payload = bytearray()
    for chunk in chunks:
        if header is None:
            header = _checked(chunk, size)
        elif chunk.HasField("header") or not chunk.payload:
            raise _broken("a later chunk has a header, or is empty")
        payload += chunk.payload
        if len(payload) > header.payload_bytes:
            raise _broken(f"its chunks have more than the {header.payload_bytes} bytes of its header")
    if header is None:
        raise _broken("the stream ended before its first chunk")
    if len(payload) != header.payload_bytes:
        raise _broken(f"the stream ended after {len(payload)} of {header.payload_bytes} bytes")
    base = header.base if header.HasField("base") else None
    return Patch(base, header.target, _ENCODINGS[int(header.encoding)], bytes(payload), header.sha256, header.size)


def max_payload_bytes(size: int) -> int:
    """The largest payload of a patch for `size` floats: a zstd frame that could not compress anything."""
    return 5 * size + 1024


def _checked(chunk: weights_pb2.PatchChunk, size: int) -> weights_pb2.PatchHeader:
    header = chunk.header
    if not chunk.HasField("header"):
        raise _broken("its first chunk has no header")
    if header.size != size:
        raise _broken(f"it is for {header.size} weights, but this policy has {size}")
    if int(header.encoding) not in _ENCODINGS:
        raise _broken(f"it has encoding {header.encoding}, which this version does not know")
    if header.HasField("base") == (_ENCODINGS[int(header.encoding)] in _FULL_COPIES):
        raise _broken("it is a full copy with a base, or a difference without one")
    if header.payload_bytes > max_payload_bytes(size):
        raise _broken(f"its header states {header.payload_bytes} bytes, more than {size} weights can need")
    if len(header.sha256) != _SHA256_BYTES or max(header.base, header.target) > _LARGEST:
        raise _broken(f"its SHA-256 has {len(header.sha256)} bytes, or a version number is larger than {_LARGEST}")
    return header


def _broken(problem: str) -> ContractViolation:
    return ContractViolation(
        f"A patch cannot be used: {problem}. Keep acting with the present weights and pull in full (without `have`)."
    )
