import dataclasses
import hashlib
import tracemalloc

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rl4sys.weights import (
    Encoding,
    Flat,
    LayoutMismatch,
    Patch,
    PatchMismatch,
    Version,
    apply_patch,
    make_patch,
)

bit_patterns = hnp.arrays(np.uint32, 33, elements=st.integers(0, 2**32 - 1))


def near_versions(size: int = 5000) -> tuple[Version, Version]:
    """Weights before and after one step of Adam."""
    rng = np.random.default_rng(1)
    before = (0.1 * rng.standard_normal(size)).astype(np.float32)
    step = 1e-3 * np.clip(rng.standard_normal(size), -1.0, 1.0)
    return Version(3, before), Version(4, (before - step).astype(np.float32))


def patch_with(encoding: Encoding) -> tuple[Flat, Patch]:
    before, after = near_versions()
    patches = {
        Encoding.XOR: make_patch(before, after),
        Encoding.PLANES: make_patch(None, after),
        Encoding.RAW: Patch(None, 4, Encoding.RAW, after.blob.tobytes(), after.sha256, 5000),
    }
    assert patches[encoding].encoding is encoding
    return before.blob, patches[encoding]


@given(bit_patterns, bit_patterns)
@settings(max_examples=50, deadline=None)
def test_a_patch_leads_from_any_bits_to_any_other(before: np.ndarray, after: np.ndarray) -> None:
    base, target = Version(0, before.view(np.float32)), Version(1, after.view(np.float32))
    assert apply_patch(base.blob, make_patch(base, target), 33).tobytes() == after.tobytes()
    assert apply_patch(None, make_patch(None, target), 33).tobytes() == after.tobytes()


def test_nan_negative_zero_and_subnormals_survive() -> None:
    odd = np.array([np.nan, -np.nan, -0.0, 0.0, 1e-45, -1e-40, np.inf, -np.inf] * 40, np.float32)
    base, target = Version(0, odd), Version(1, odd[::-1].copy())
    assert apply_patch(odd, make_patch(base, target), odd.size).tobytes() == target.blob.tobytes()


def test_one_step_of_adam_costs_less_than_three_quarters_of_the_weights() -> None:
    before, after = near_versions(50_000)
    patch = make_patch(before, after)
    assert (patch.base, patch.target, patch.encoding) == (3, 4, Encoding.XOR)
    assert len(patch.payload) < 0.75 * after.blob.nbytes


def test_unrelated_weights_are_sent_in_full() -> None:
    rng = np.random.default_rng(2)
    before, after = (rng.standard_normal(5000).astype(np.float32) for _ in range(2))
    patch = make_patch(Version(0, before), Version(1, after))
    assert patch.base is None
    assert patch.encoding is Encoding.PLANES


def test_noise_is_sent_raw() -> None:
    noise = np.random.default_rng(3).integers(0, 2**32, 500, np.uint32).view(np.float32)
    patch = make_patch(None, Version(0, noise))
    assert patch.encoding is Encoding.RAW
    assert apply_patch(None, patch, 500).tobytes() == noise.tobytes()


@pytest.mark.parametrize("encoding", Encoding)
def test_the_result_has_the_published_digest_and_is_read_only(encoding: Encoding) -> None:
    base, patch = patch_with(encoding)
    result = apply_patch(base, patch, 5000)
    assert hashlib.sha256(result.tobytes()).digest() == patch.sha256
    with pytest.raises(ValueError, match="WRITEABLE"):
        result.flags.writeable = True


@pytest.mark.parametrize("encoding", Encoding)
def test_flipped_bits_never_yield_other_weights(encoding: Encoding) -> None:
    base, patch = patch_with(encoding)
    good = apply_patch(base, patch, 5000).tobytes()
    rng = np.random.default_rng(4)
    for bit in rng.integers(0, 8 * len(patch.payload), 100).tolist() + list(range(64)):
        payload = bytearray(patch.payload)
        payload[bit // 8] ^= 1 << bit % 8
        try:
            result = apply_patch(base, dataclasses.replace(patch, payload=bytes(payload)), 5000)
        except PatchMismatch:
            continue
        # A few bits of a zstd header say nothing about its content.
        assert result.tobytes() == good


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("length", [0, 3, 100])
def test_a_truncated_payload_is_refused(encoding: Encoding, length: int) -> None:
    base, patch = patch_with(encoding)
    with pytest.raises(PatchMismatch, match="pull in full"):
        apply_patch(base, dataclasses.replace(patch, payload=patch.payload[:length]), 5000)


def test_a_patch_on_the_wrong_base_is_refused() -> None:
    base, patch = patch_with(Encoding.XOR)
    with pytest.raises(PatchMismatch, match=r"another SHA-256 .* pull in full \(have=None\)"):
        apply_patch(base + np.float32(1.0), patch, 5000)
    with pytest.raises(PatchMismatch, match="needs a base"):
        apply_patch(None, patch, 5000)


def test_a_base_of_another_size_is_refused() -> None:
    base, patch = patch_with(Encoding.XOR)
    with pytest.raises(LayoutMismatch, match="of 5000 values"):
        apply_patch(base[:-1], patch, 5000)


@pytest.mark.parametrize("encoding", Encoding)
def test_a_patch_for_another_number_of_weights_is_refused(encoding: Encoding) -> None:
    base, patch = patch_with(encoding)
    with pytest.raises(PatchMismatch, match="for 10000000000 weights, but this policy has 5000"):
        apply_patch(base, dataclasses.replace(patch, size=10**10), 5000)


@pytest.mark.parametrize("encoding", [Encoding.PLANES, Encoding.XOR])
def test_a_decompression_bomb_is_refused_before_it_is_unpacked(encoding: Encoding) -> None:
    base, patch = patch_with(encoding)
    frame = zstandard.ZstdCompressor().compress(bytes(20_000_000))
    tracemalloc.start()
    with pytest.raises(PatchMismatch, match="states 20000000 bytes"):
        apply_patch(base, dataclasses.replace(patch, payload=frame), 5000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_patch_cannot_be_changed() -> None:
    _, patch = patch_with(Encoding.XOR)
    with pytest.raises(dataclasses.FrozenInstanceError):
        patch.target = 9  # type: ignore[misc]  # the point of the test
