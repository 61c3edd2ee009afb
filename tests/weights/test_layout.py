import dataclasses

import numpy as np
import pytest

from rl4sys.weights import Layout, LayoutMismatch

LAYOUT = Layout([("kernel", (2, 3)), ("bias", [3]), ("epsilon", ())])


def test_tensors_are_laid_out_in_order() -> None:
    assert LAYOUT.size == 10
    assert [LAYOUT.offset(name) for name in ("kernel", "bias", "epsilon")] == [0, 6, 9]


def test_views_share_the_memory_of_the_flat_vector() -> None:
    flat = np.arange(10, dtype=np.float32)
    views = LAYOUT.views(flat)
    views["bias"][1] = -1.0
    assert flat[7] == -1.0
    assert views["kernel"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert views["epsilon"].shape == ()


def test_views_of_read_only_weights_are_read_only() -> None:
    flat = np.zeros(10, np.float32)
    flat.flags.writeable = False
    assert not any(view.flags.writeable for view in LAYOUT.views(flat).values())


def test_flattening_views_gives_the_same_vector_as_a_copy() -> None:
    flat = np.random.default_rng(0).standard_normal(10).astype(np.float32)
    again = LAYOUT.flatten(LAYOUT.views(flat))
    assert again.tobytes() == flat.tobytes()
    assert not np.shares_memory(again, flat)


def test_statistics_kept_in_float64_are_rounded() -> None:
    flat = Layout([("mean", (1,))]).flatten({"mean": np.array([0.1])})
    assert flat.dtype == np.float32
    assert flat[0] == np.float32(0.1)


def test_missing_and_unknown_tensors_are_named() -> None:
    with pytest.raises(LayoutMismatch, match=r"missing \['bias', 'epsilon'\], unknown \['gain'\]"):
        LAYOUT.flatten({"kernel": np.zeros((2, 3)), "gain": np.zeros(3)})


def test_a_tensor_of_another_shape_is_refused_even_if_it_would_broadcast() -> None:
    tensors = {"kernel": np.zeros((1, 3)), "bias": np.zeros(3), "epsilon": np.zeros(())}
    with pytest.raises(LayoutMismatch, match=r"'kernel' has shape \(1, 3\); expected \(2, 3\)"):
        LAYOUT.flatten(tensors)


@pytest.mark.parametrize("flat", [np.zeros(9, np.float32), np.zeros(10), np.zeros((2, 5), np.float32)])
def test_views_need_a_float32_vector_of_this_size(flat: np.ndarray) -> None:
    with pytest.raises(LayoutMismatch, match="expected one flat float32 vector of 10 values"):
        LAYOUT.views(flat)


def test_an_unknown_name_has_no_offset() -> None:
    with pytest.raises(LayoutMismatch, match="no tensor 'gain'"):
        LAYOUT.offset("gain")


@pytest.mark.parametrize("shapes", [[("w", (1,)), ("w", (2,))], [("w", (-1,))]])
def test_an_invalid_layout_is_refused(shapes: list[tuple[str, tuple[int, ...]]]) -> None:
    with pytest.raises(LayoutMismatch, match="Tensor 'w'"):
        Layout(shapes)


def test_a_layout_is_a_frozen_value() -> None:
    assert Layout(LAYOUT.shapes) == LAYOUT
    assert hash(Layout(LAYOUT.shapes)) == hash(LAYOUT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        LAYOUT.size = 3  # type: ignore[misc]  # the point of the test
