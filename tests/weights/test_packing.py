import numpy as np
import pytest
import zstandard

from rl4sys.weights.packing import CorruptPayload, compress, decompress, from_planes, to_planes


def test_planes_group_the_bytes_of_equal_significance() -> None:
    words = np.array([0x04030201, 0x14131211], "<u4")
    assert to_planes(words) == bytes([0x01, 0x11, 0x02, 0x12, 0x03, 0x13, 0x04, 0x14])


@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_planes_can_be_undone(count: int) -> None:
    words = np.random.default_rng(count).integers(0, 2**32, count, np.uint32)
    assert from_planes(to_planes(words)).tolist() == words.tolist()


@pytest.mark.parametrize("size", [99, 101, 0])
def test_content_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(CorruptPayload, match=f"states 100 bytes of content; expected {size}"):
        decompress(compress(bytes(100)), size)


def test_a_frame_without_its_size_is_refused() -> None:
    payload = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(100))
    with pytest.raises(CorruptPayload, match="states -1 bytes"):
        decompress(payload, 100)


@pytest.mark.parametrize("payload", [b"", b"not zstd at all", compress(bytes(100))[:-2], compress(bytes(100)) + b"x"])
def test_anything_but_one_frame_is_refused(payload: bytes) -> None:
    with pytest.raises(CorruptPayload):
        decompress(payload, 100)
