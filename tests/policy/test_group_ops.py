"""The ops over groups, latents and attention: what they refuse, and what must not happen."""

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import COMPILERS, Op, ProgramBuilder

BIAS = np.zeros((1, 3), np.float32)


def run(kind: str, inputs: list[Array], tensors: list[Array] | None = None, **settings: Any) -> tuple[Array, ...]:
    names = tuple(f"x{i}" for i in range(len(inputs)))
    compiled = COMPILERS[kind](Op(kind, ("out",), names, (), settings), inputs, tensors or [])
    for call in compiled.calls:
        call()
    return compiled.outputs


def row(*values: float) -> Array:
    return np.array([values], np.float32)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1.0 - 2.0**-24, 1.0, 7.0])
def test_a_latent_always_has_one_class(uniform: float) -> None:
    logits = row(0.0, 50.0, -50.0, 1.0, 1.0, -1e30)
    (drawn,) = run("latent", [logits, row(uniform, uniform)], groups=2, unimix=0.01, draw=True)
    assert drawn.reshape(2, 3).sum(1).tolist() == [1.0, 1.0]


def test_unimix_gives_every_class_a_chance() -> None:
    logits, uniform = np.tile(row(100.0, 0.0), (3000, 1)), np.random.default_rng(0).random((3000, 1), np.float32)
    (drawn,) = run("latent", [logits, uniform], groups=1, unimix=0.1, draw=True)
    assert 0.03 < drawn[:, 1].mean() < 0.07


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("draw", [True, False])
def test_a_latent_does_not_hide_logits_that_are_not_finite(bad: float, draw: bool) -> None:
    with np.errstate(invalid="ignore"):
        (chosen,) = run("latent", [row(0.0, bad, 1.0, 2.0), row(0.5, 0.5)], groups=2, unimix=0.01, draw=draw)
    assert np.isnan(chosen[0, :2]).all()
    assert chosen[0, 2:].sum() == 1.0


def test_ties_go_to_the_first_class() -> None:
    assert run("latent", [row(1.0, 1.0)], groups=1, unimix=0.01, draw=False)[0].tolist() == [[1.0, 0.0]]


def test_rows_that_were_never_written_are_left_out() -> None:
    unwritten = np.full((1, 3, 2), 1e6, np.float32)
    inputs = [row(1, 1), row(1, 1), row(5, 7), unwritten, unwritten, row(0)]
    result, *_, count = run("attention", inputs, [BIAS], heads=1)
    assert result.tolist() == [[5.0, 7.0]]
    assert count.tolist() == [[1.0]]


def test_the_count_of_a_ring_stays_below_two_windows() -> None:
    ring, count, counts = np.zeros((1, 3, 2), np.float32), row(0), []
    for _ in range(9):
        *_, count = run("attention", [row(1, 1)] * 3 + [ring, ring, count], [BIAS], heads=1)
        counts.append(count.item())
    assert counts == [1, 2, 3, 4, 5, 3, 4, 5, 3]


@pytest.mark.parametrize(
    ("kind", "inputs", "settings"),
    [
        ("multiply", [row(1, 2), row(1)], {}),
        ("softmax", [row(1, 2, 3)], {"groups": 2}),
        ("softmax", [row(1, 2)], {"groups": 0}),
        ("gate", [row(1, 2, 3, 4, 5), row(1, 2)], {"groups": 1, "update_bias": -1.0}),
        ("latent", [row(1, 2)], {"groups": 1, "unimix": 0.01, "draw": True}),
        ("latent", [row(1, 2), row(0.5, 0.5)], {"groups": 1, "unimix": 0.01, "draw": True}),
        ("latent", [row(1, 2)], {"groups": 1, "unimix": 0.01, "draw": "yes"}),
        ("attention", [row(1, 1)] * 3 + [np.zeros((1, 4, 2), np.float32)] * 2 + [row(0)], {"heads": 1}),
    ],
)
def test_shapes_and_settings_that_do_not_fit_are_refused(kind: str, inputs: list[Array], settings: Any) -> None:
    with pytest.raises(ValueError, match=f"'{kind}'"):
        run(kind, inputs, [BIAS] if kind == "attention" else [], **settings)


def test_a_memory_above_one_mebibyte_is_refused_when_it_is_built() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (64,)),))
    builder.attention("x", "x", "x", heads=4, window=2048, name="core")
    with pytest.raises(ValueError, match=r"takes 1,048,580 bytes; .* 'core.keys' \[2048, 64\]: choose"):
        builder.program()


def test_a_memory_without_a_next_value_is_refused() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (2,)),))
    builder.memory("h", (2,))
    with pytest.raises(ValueError, match=r"memories \['h'\] take no value"):
        builder.program()
    builder.remember("h", builder.multiply("h", "x"))
    assert builder.program().carry[0].next == "r0"


def test_groups_that_do_not_divide_a_vector_are_refused() -> None:
    builder = ProgramBuilder((ArraySpec("x", "float32", (6,)),))
    with pytest.raises(ValueError, match="4 groups do not divide the 6 numbers of 'x'"):
        builder.grouped_linear("x", 8, 4, "l")
