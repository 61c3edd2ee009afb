import dataclasses
import hashlib
import threading

import numpy as np
import pytest

from rl4sys.state import StateMismatch
from rl4sys.weights import (
    Flat,
    Layout,
    LayoutMismatch,
    ModelStore,
    PatchMismatch,
    Version,
    VersionGone,
    apply_patch,
)


def weights(seed: int, size: int = 300) -> Flat:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def trained_store(versions: int = 30, keep: int = 8) -> tuple[ModelStore, list[bytes]]:
    """A store after some steps, and the bytes of every published version."""
    flat, store = weights(0), ModelStore(weights(0), keep)
    history = [flat.tobytes()]
    for seed in range(1, versions):
        flat = flat + np.float32(1e-3) * weights(seed)
        history.append(store.publish(flat).blob.tobytes())
    return store, history


def test_the_first_weights_are_version_zero() -> None:
    store = ModelStore(weights(0))
    assert store.latest == 0
    assert store.get(0).blob.tobytes() == weights(0).tobytes()


def test_publishing_counts_up_and_copies() -> None:
    store, flat = ModelStore(weights(0)), weights(1)
    version = store.publish(flat)
    flat[:] = 0.0
    assert (version.number, store.latest, store.newest) == (1, 1, version)
    assert version.blob.tobytes() == weights(1).tobytes()


def test_published_weights_are_immutable() -> None:
    version = ModelStore(weights(0)).newest
    with pytest.raises(ValueError, match="read-only"):
        version.blob[0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        version.blob.flags.writeable = True
    with pytest.raises(dataclasses.FrozenInstanceError):
        version.number = 7  # type: ignore[misc]  # the point of the test


def test_a_digest_is_computed_once_and_lazily() -> None:
    version = ModelStore(weights(0)).publish(weights(1))
    assert "sha256" not in vars(version)
    assert version.sha256 == hashlib.sha256(weights(1).tobytes()).digest()
    assert version.sha256 is version.sha256


def test_only_the_newest_versions_are_kept() -> None:
    store, history = trained_store(versions=30, keep=8)
    assert [store.get(n).blob.tobytes() for n in range(22, 30)] == history[22:]
    for gone in (21, 30, -1):
        with pytest.raises(VersionGone, match=rf"Version {gone} is not kept; the store has 22 to 29\. Ask for"):
            store.get(gone)


def test_a_store_that_keeps_one_version_serves_full_copies() -> None:
    store, history = trained_store(versions=5, keep=1)
    patch = store.patch(have=3)
    assert patch.base is None
    assert apply_patch(None, patch, 300).tobytes() == history[4]


def test_500_pulls_from_any_version_end_with_the_published_bytes() -> None:
    store, history = trained_store()
    rng = np.random.default_rng(5)
    for _ in range(500):
        have, want = int(rng.integers(-1, 40)), int(rng.integers(22, 30))
        held = np.frombuffer(history[have] if 0 <= have < 30 else history[0], np.float32).copy()
        if rng.random() < 0.3:
            held[rng.integers(300)] += 1.0
        try:
            result = apply_patch(held, store.patch(have, want), 300)
        except PatchMismatch:
            result = apply_patch(None, store.patch(None, want), 300)
        assert hashlib.sha256(result.tobytes()).digest() == hashlib.sha256(history[want]).digest()


def test_a_patch_leads_to_the_newest_version_by_default() -> None:
    store, _ = trained_store()
    assert (store.patch(25).base, store.patch(25).target) == (25, 29)
    assert store.patch(25, want=27).target == 27
    assert store.patch(25, want=23).target == 23
    with pytest.raises(VersionGone):
        store.patch(25, want=3)


@pytest.mark.parametrize("have", [None, 3, 99, -5])
def test_a_client_with_an_unknown_version_gets_a_full_copy(have: int | None) -> None:
    store, history = trained_store()
    patch = store.patch(have)
    assert patch.base is None
    assert apply_patch(None, patch, 300).tobytes() == history[-1]


def test_a_patch_to_the_same_version_is_tiny() -> None:
    store, _ = trained_store()
    assert len(store.patch(store.latest).payload) < 40


def test_a_restored_store_continues_like_the_saved_one() -> None:
    saved, _ = trained_store()
    restored = ModelStore(weights(7))
    restored.restore(saved.state())
    first, second = saved.publish(weights(8)), restored.publish(weights(8))
    assert (first.number, first.sha256) == (second.number, second.sha256)
    assert restored.patch(29).sha256 == saved.patch(29).sha256


def test_a_saved_state_does_not_change_with_later_training() -> None:
    store, history = trained_store()
    state = store.state()
    store.publish(weights(9))
    restored = ModelStore(weights(0))
    restored.restore(state)
    assert (restored.latest, restored.newest.blob.tobytes()) == (29, history[-1])


@pytest.mark.parametrize("state", [{"latest": 3}, {"latest": "3", "blob": weights(0)}, {"latest": 3, "blob": [1.0]}])
def test_a_damaged_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(StateMismatch):
        ModelStore(weights(0)).restore(state)  # type: ignore[arg-type]  # the point of the test


def test_weights_of_another_size_are_refused_everywhere() -> None:
    store, other = ModelStore(weights(0)), weights(0, size=299)
    with pytest.raises(LayoutMismatch, match="of 300 values"):
        store.publish(other)
    with pytest.raises(LayoutMismatch, match="of 300 values"):
        store.restore(ModelStore(other).state())
    with pytest.raises(ValueError, match="keep is 0"):
        ModelStore(weights(0), keep=0)


def test_a_model_may_have_no_weights() -> None:
    store = ModelStore(Layout([]).flatten({}))
    store.publish(Layout([]).flatten({}))
    assert apply_patch(None, store.patch(0), 0).size == 0


def test_readers_see_complete_versions_while_the_learner_publishes() -> None:
    store, seen = ModelStore(np.zeros(300, np.float32), keep=2), list[Version]()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(store.newest)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 500):
        store.publish(np.full(300, number, np.float32))
    done.set()
    reader.join()
    assert all((version.blob == version.number).all() for version in set(seen))
