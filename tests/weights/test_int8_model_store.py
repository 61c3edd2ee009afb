import struct

import numpy as np
import pytest

from rl4sys.weights import Encoding, Flat, Int8ModelStore, Layout, LayoutMismatch, ModelStore, apply_patch
from rl4sys.weights.int8_deltas import CHUNK, Int8Delta, chunk_lengths
from rl4sys.weights.packing import CorruptPayload, compress

LAYOUT = Layout([("kernel", (40, 50)), ("bias", (50,)), ("epsilon", ())])


def weights(seed: int) -> Flat:
    return (0.1 * np.random.default_rng(seed).standard_normal(LAYOUT.size)).astype(np.float32)


def training(versions: int) -> list[Flat]:
    """Weights that wander with steps of about a thousandth."""
    steps = np.random.default_rng(1).standard_normal((versions, LAYOUT.size)) * 1e-3
    return list((weights(0) + np.cumsum(steps, axis=0)).astype(np.float32))


def test_chunks_do_not_cross_tensors() -> None:
    assert chunk_lengths(LAYOUT).tolist() == [CHUNK] * 7 + [2000 - 7 * CHUNK, 50, 1]


def test_a_follower_has_the_bytes_of_the_store_at_every_version() -> None:
    store = Int8ModelStore(weights(0), LAYOUT)
    held = store.newest.blob
    for flat in training(50):
        store.publish(flat)
        patch = store.patch(store.latest - 1)
        held = apply_patch(held, patch, LAYOUT.size)
        assert patch.encoding is Encoding.INT8
        assert held.tobytes() == store.newest.blob.tobytes()


def test_rounding_does_not_add_up() -> None:
    store = Int8ModelStore(weights(0), LAYOUT)
    errors = [np.abs(store.publish(flat).blob - flat).max() for flat in training(200)]
    # Half a scale; a change is at most five thousandths.
    assert max(errors) < 0.5 * 5e-3 / 127 + 1e-7


def test_what_was_rounded_away_follows_when_learning_stops() -> None:
    store, flat = Int8ModelStore(weights(0), LAYOUT), weights(1)
    for _ in range(5):
        store.publish(flat)
    np.testing.assert_allclose(store.newest.blob, flat, rtol=1e-6, atol=1e-9)


def test_statistics_that_leap_do_not_blur_their_neighbours() -> None:
    store, flat = Int8ModelStore(weights(0), LAYOUT), weights(0)
    LAYOUT.views(flat)["epsilon"][...] = 1e6
    LAYOUT.views(flat)["bias"][...] += np.float32(1e-3)
    published = LAYOUT.views(store.publish(flat).blob)
    np.testing.assert_allclose(published["bias"], LAYOUT.views(flat)["bias"], atol=1e-5)
    np.testing.assert_allclose(published["epsilon"], 1e6, rtol=1e-6)


def test_int8_patches_are_less_than_half_of_lossless_ones() -> None:
    exact, rounded = ModelStore(weights(0)), Int8ModelStore(weights(0), LAYOUT)
    exact.publish(training(1)[0])
    rounded.publish(training(1)[0])
    assert len(rounded.patch(0).payload) < 0.5 * len(exact.patch(0).payload)


def test_adding_a_delta_is_one_multiplication_and_one_addition_in_float32() -> None:
    base, target = weights(0), weights(1)
    delta = Int8Delta.between(base, target, chunk_lengths(LAYOUT))
    scales = np.repeat(delta.scales, delta.lengths)
    by_hand = [b + np.float32(q) * s for b, q, s in zip(base, delta.quantised, scales, strict=True)]
    assert np.array(by_hand, np.float32).tobytes() == delta.added_to(base).tobytes()


def test_a_patch_over_several_versions_is_lossless() -> None:
    store = Int8ModelStore(weights(0), LAYOUT)
    blobs = [store.newest.blob, *(store.publish(flat).blob for flat in training(6))]
    patch = store.patch(2, want=5)
    assert patch.encoding is Encoding.XOR
    assert apply_patch(blobs[2], patch, LAYOUT.size).tobytes() == blobs[5].tobytes()
    assert store.patch(2, want=3).encoding is Encoding.INT8
    assert store.patch(3, want=2).encoding is not Encoding.INT8


@pytest.mark.parametrize("have", [None, 0, 77])
def test_without_a_known_base_the_copy_is_full(have: int | None) -> None:
    store = Int8ModelStore(weights(0), LAYOUT, keep=3)
    for flat in training(10):
        store.publish(flat)
    patch = store.patch(have)
    assert patch.base is None
    assert apply_patch(None, patch, LAYOUT.size).tobytes() == store.newest.blob.tobytes()


def test_a_restored_store_goes_on_as_the_saved_one() -> None:
    flats, saved, restored = training(20), *(Int8ModelStore(weights(0), LAYOUT) for _ in range(2))
    for flat in flats[:10]:
        saved.publish(flat)
    restored.restore(saved.state())
    for flat in flats[10:]:
        assert saved.publish(flat).sha256 == restored.publish(flat).sha256
    assert restored.latest == saved.latest
    assert restored.patch(19) == saved.patch(19)


def test_restoring_forgets_the_deltas_of_the_abandoned_history() -> None:
    store = Int8ModelStore(weights(0), LAYOUT)
    store.publish(weights(1))
    other = Int8ModelStore(weights(2), LAYOUT)
    other.publish(weights(3))
    store.restore(other.state())
    assert apply_patch(None, store.patch(0), LAYOUT.size).tobytes() == other.newest.blob.tobytes()


@pytest.mark.parametrize("change", [0.0, 1e-45, 1e-38, 1e-36])
def test_changes_too_small_for_a_scale_are_harmless(change: float) -> None:
    zeros = np.zeros(LAYOUT.size, np.float32)
    store = Int8ModelStore(zeros, LAYOUT)
    published = store.publish(zeros + np.float32(change)).blob
    assert np.abs(published - np.float32(change)).max() <= 127 * np.finfo(np.float32).smallest_normal
    assert apply_patch(zeros, store.patch(0), LAYOUT.size).tobytes() == published.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused_and_change_nothing(value: float) -> None:
    store, flat = Int8ModelStore(weights(0), LAYOUT), weights(1)
    flat[3] = value
    with pytest.raises(ValueError, match="1 weights became NaN or infinite"):
        store.publish(flat)
    assert store.latest == 0
    assert store.publish(weights(1)).number == 1


@pytest.mark.parametrize("lengths", [[9], [2**32 - 1, 11], [5, 4]])
def test_chunks_that_do_not_cover_the_weights_are_refused(lengths: list[int]) -> None:
    content = np.array(lengths, "<u4").tobytes() + bytes(4 * len(lengths) + 10)
    with pytest.raises(CorruptPayload, match="expected 10"):
        Int8Delta.unpack(struct.pack("<I", len(lengths)) + compress(content), 10)


def test_more_chunks_than_weights_are_refused() -> None:
    with pytest.raises(CorruptPayload, match="4294967295 chunks for 10 values"):
        Int8Delta.unpack(b"\xff" * 4 + compress(bytes(10)), 10)


def test_weights_must_fit_the_layout() -> None:
    with pytest.raises(LayoutMismatch, match=f"of {LAYOUT.size} values"):
        Int8ModelStore(weights(0)[1:], LAYOUT)
    with pytest.raises(LayoutMismatch, match=f"of {LAYOUT.size} values"):
        Int8ModelStore(weights(0), LAYOUT).publish(weights(0)[1:])


def test_a_model_without_weights_is_a_model() -> None:
    nothing = np.empty(0, np.float32)
    store = Int8ModelStore(nothing, Layout([]))
    store.publish(nothing)
    assert apply_patch(nothing, store.patch(0), 0).size == 0
