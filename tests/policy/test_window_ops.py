"""Convolution, pooling, slices and shapes: what they refuse, and that rows are independent of each other."""

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import COMPILERS, BoxAction, Head, NumpyPolicy, Op, PolicySpec, ProgramBuilder

SEQUENCE = np.arange(10, dtype=np.float32).reshape(1, 2, 5)


def run(kind: str, x: Array, tensors: list[Array] | None = None, **settings: Any) -> Array:
    compiled = COMPILERS[kind](Op(kind, ("out",), ("x",), (), settings), [x], tensors or [])
    for call in compiled.calls:
        call()
    return compiled.outputs[0]


def test_padding_is_never_the_highest() -> None:
    assert run("max_pool1d", -SEQUENCE - 1, kernel=2, stride=2, padding=1).tolist() == [[[-1, -2, -4], [-6, -7, -9]]]


def test_padding_counts_as_zeros_in_a_mean() -> None:
    assert run("average_pool1d", SEQUENCE, kernel=2, stride=2, padding=1).tolist() == [[[0, 1.5, 3.5], [2.5, 6.5, 8.5]]]


def test_a_nan_stays_in_its_window() -> None:
    x = SEQUENCE.copy()
    x[0, 0, 1] = np.nan
    pooled = run("max_pool1d", x, kernel=2, stride=2, padding=0)
    assert np.isnan(pooled).tolist() == [[[True, False], [False, False]]]


@pytest.mark.parametrize(
    ("kind", "settings", "reason"),
    [
        ("max_pool1d", {"kernel": 7, "stride": 1, "padding": 0}, "do not fit"),
        ("max_pool1d", {"kernel": 2, "stride": 1, "padding": 2}, "half of its kernel"),
        ("max_pool1d", {"kernel": 2, "stride": 0, "padding": 0}, "'stride'"),
        ("average_pool2d", {"kernel": 2, "stride": 1, "padding": 0}, "expected channels and 2 more axes"),
        ("slice", {"axis": 1, "start": 3, "stop": 6}, "takes 3 to 6 of axis 1"),
        ("slice", {"axis": 2, "start": 0, "stop": 1}, "of axis 2"),
        ("slice", {"axis": 0, "start": 1, "stop": 1}, "takes 1 to 1"),
        ("reshape", {"lengths": [3, 3]}, "as many numbers"),
        ("reshape", {"lengths": [-1, 5]}, "whole numbers from 1"),
        ("reshape", {"lengths": 10}, "whole numbers from 1"),
    ],
)
def test_what_cannot_be_is_refused(kind: str, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        run(kind, SEQUENCE, **settings)


def test_a_convolution_needs_as_many_channels_as_its_kernel() -> None:
    tensors = [np.zeros((3, 4, 2), np.float32), np.zeros(3, np.float32)]
    with pytest.raises(ValueError, match="conv1d"):
        run("conv1d", SEQUENCE, tensors, stride=1, padding=0)


def test_rows_of_a_convolution_have_the_bits_of_single_rows() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (2, 9)),))
    register = builder.flat(builder.average_pool(builder.conv1d("x", 5, 3, "c", padding=1), 3, stride=2))
    size, rng = builder.shape(register)[0], np.random.default_rng(0)
    action = BoxAction((-np.inf,) * size, (np.inf,) * size)
    spec = PolicySpec(action, builder.program(), Head("deterministic", (register,)))
    policy = NumpyPolicy(spec, rng.standard_normal(5 * 2 * 3 + 5, np.float32))
    rows, noise = {"x": rng.standard_normal((6, 2, 9), np.float32)}, np.zeros((6, 0), np.float32)
    together = policy.act_on_rows(rows, noise)[0].action[:6].copy()
    alone = [policy.act_on_row(rows, row, noise[:1]).action[0].copy() for row in range(6)]
    assert np.array_equal(together, np.stack(alone))


@pytest.mark.parametrize(
    "write",
    [
        lambda builder: builder.max_pool("x", 2, stride=1, padding=2),
        lambda builder: builder.conv1d("x", 3, 9, "c"),
        lambda builder: builder.slice("x", 2, 2),
        lambda builder: builder.reshape("x", (4, 4)),
    ],
)
def test_the_builder_refuses_what_no_runtime_would_run(write: Any) -> None:
    with pytest.raises(ValueError, match=r"window|part|cannot become"):
        write(ProgramBuilder((ArraySpec("x", "float32", (2, 5)),)))
