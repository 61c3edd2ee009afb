from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl4sys.weights import Encoding, ModelStore, Patch, PatchMismatch, apply_patch
from rl4sys.wire import ContractViolation, decode_patch, encode_patch
from rl4sys.wire.generated import weights_pb2

SIZE = 1000
FIRST, SECOND = np.random.default_rng(5).standard_normal((2, SIZE), np.float32)


def difference() -> Patch:
    store = ModelStore(FIRST)
    store.publish(FIRST + np.float32(1e-6))
    return store.patch(0)


@pytest.mark.parametrize("patch", [difference(), ModelStore(SECOND).patch(None)])
@given(part_bytes=st.integers(1, 5000))
def test_a_patch_decoded_from_its_chunks_equals_the_original(patch: Patch, part_bytes: int) -> None:
    parts = [part.SerializeToString() for part in encode_patch(patch, part_bytes)]
    assert decode_patch(map(weights_pb2.PatchChunk.FromString, parts), SIZE) == patch


def test_every_encoding_has_its_name_and_number_on_the_wire() -> None:
    on_the_wire = dict(weights_pb2.PatchEncoding.items())
    assert on_the_wire.pop("PATCH_ENCODING_UNSPECIFIED") == 0
    assert on_the_wire == {f"PATCH_ENCODING_{encoding.name}": encoding.value for encoding in Encoding}


def test_a_damaged_payload_is_detected_when_it_is_applied() -> None:
    parts = list(encode_patch(ModelStore(SECOND).patch(None), 500))
    parts[2].payload = bytes(500)
    with pytest.raises(PatchMismatch):
        apply_patch(None, decode_patch(parts, SIZE), SIZE)


Parts = list[weights_pb2.PatchChunk]
BROKEN: dict[str, tuple[Callable[[Parts], Any], str]] = {
    "nothing": (lambda parts: parts.clear(), "before its first chunk"),
    "no header": (lambda parts: parts[0].ClearField("header"), "no header"),
    "a second header": (lambda parts: parts[1].header.CopyFrom(parts[0].header), "later chunk"),
    "an empty part": (lambda parts: parts[1].ClearField("payload"), "later chunk"),
    "a missing part": (lambda parts: parts.pop(), "ended after"),
    "a part too many": (lambda parts: parts.append(parts[-1]), "more than"),
    "other weights": (lambda parts: setattr(parts[0].header, "size", 999), "for 999 weights"),
    "an endless payload": (lambda parts: setattr(parts[0].header, "payload_bytes", 2**60), "can need"),
    "an unknown encoding": (lambda parts: setattr(parts[0].header, "encoding", 50), "encoding 50"),
    "an encoding that is reserved": (lambda parts: setattr(parts[0].header, "encoding", 4), "encoding 4"),
    "no encoding": (lambda parts: setattr(parts[0].header, "encoding", 0), "encoding 0"),
    "no base": (lambda parts: parts[0].header.ClearField("base"), "without one"),
    "half a digest": (lambda parts: setattr(parts[0].header, "sha256", bytes(16)), "16 bytes"),
    "a huge version": (lambda parts: setattr(parts[0].header, "target", 2**63), "larger than"),
}


@pytest.mark.parametrize(("change", "words"), BROKEN.values(), ids=list(BROKEN))
def test_a_bad_stream_of_chunks_is_refused_with_advice(change: Callable[[Parts], Any], words: str) -> None:
    parts = list(encode_patch(difference(), 100))
    change(parts)
    with pytest.raises(ContractViolation, match=f"{words}.*pull in full"):
        decode_patch(parts, SIZE)


def test_an_endless_stream_is_refused_after_its_stated_length() -> None:
    first = next(encode_patch(difference(), 100))

    def endless() -> Any:
        yield first
        while True:
            yield weights_pb2.PatchChunk(payload=bytes(100))

    with pytest.raises(ContractViolation, match="more than"):
        decode_patch(endless(), SIZE)
