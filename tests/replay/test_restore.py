from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

from rl4sys.experience import Array, Transitions
from rl4sys.state import StateMismatch

from .histories import Replay, history, learn, prioritized, through_json, uniform
from .segments import segment

Make = Callable[..., Replay]
KINDS = pytest.mark.parametrize("make", [uniform, prioritized])


def assert_same(one: list[Transitions], other: list[Transitions]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        for field in fields(Transitions):
            np.testing.assert_equal(getattr(a, field.name), getattr(b, field.name))


def resumed(buffer: Replay, chunks: dict[int, dict[str, Array]], make: Make, **settings: int) -> Replay:
    """A new buffer with another seed, restored as if from files."""
    other = make(seed=1, **settings)
    other.restore(through_json(buffer.state()))
    for first in sorted(chunks, reverse=True):
        other.load_rows(first, chunks[first])
    return other


@KINDS
@pytest.mark.parametrize("n_step", [1, 4])
@pytest.mark.parametrize("capacity", [23, 64, 5000])
def test_draws_after_a_restore_equal_those_without_one(make: Make, capacity: int, n_step: int) -> None:
    buffer, chunks, saved = make(capacity=capacity, n_step=n_step), {}, 0
    segments = list(history(seed=capacity, segments=120))
    for number, item in enumerate(segments[:60]):
        learn(buffer, item)
        if number % 5 == 4:
            chunks[saved] = dict(buffer.rows(saved, buffer.total))
            saved = buffer.total
    other = resumed(buffer, chunks, make, capacity=capacity, n_step=n_step)
    for item in segments[60:]:
        assert_same(learn(other, item), learn(buffer, item))
    assert other.counts == buffer.counts


@KINDS
def test_a_link_made_after_its_row_was_saved_is_restored(make: Make) -> None:
    buffer = make(capacity=20, n_step=3)
    buffer.add(segment(4))
    chunks = {0: dict(buffer.rows(0, 4))}
    buffer.add(segment(4, start=4))
    chunks[4] = dict(buffer.rows(4, 8))
    other = resumed(buffer, chunks, make, capacity=20, n_step=3)
    assert_same(list(other.due()), list(buffer.due()))


@KINDS
def test_an_unfinished_episode_continues_after_a_restore(make: Make) -> None:
    buffer = make(capacity=20, n_step=3)
    buffer.add(segment(4))
    other = resumed(buffer, {0: dict(buffer.rows(0, 4))}, make, capacity=20, n_step=3)
    assert_same(learn(other, segment(4, start=4)), learn(buffer, segment(4, start=4)))


@KINDS
def test_rows_saved_after_the_state_are_ignored(make: Make) -> None:
    buffer, longer = make(capacity=20, n_step=3), make(capacity=20, n_step=3)
    buffer.add(segment(8))
    longer.add(segment(8))
    longer.add(segment(4, start=8))
    other = resumed(buffer, {0: dict(longer.rows(0, 12))}, make, capacity=20, n_step=3)
    assert_same(list(other.due()), list(buffer.due()))
    assert_same(learn(other, segment(4, start=8)), learn(buffer, segment(4, start=8)))


@KINDS
def test_a_buffer_that_was_never_filled_can_be_restored(make: Make) -> None:
    other = resumed(make(capacity=5), {0: dict(make(capacity=5).rows(0, 0))}, make, capacity=5)
    assert len(learn(other, segment(6))) == 1


@KINDS
def test_continuing_without_all_rows_is_refused(make: Make) -> None:
    buffer = make(capacity=20)
    buffer.add(segment(8))
    other = resumed(buffer, {0: dict(buffer.rows(0, 5))}, make, capacity=20)
    with pytest.raises(StateMismatch, match="8 transitions, but 3 were not loaded"):
        other.add(segment(1, start=8))


@KINDS
def test_a_state_of_another_capacity_is_refused(make: Make) -> None:
    with pytest.raises(StateMismatch, match="capacity 20, this one 30"):
        make(capacity=30).restore(make(capacity=20).state())


@KINDS
def test_rows_of_other_columns_are_refused(make: Make) -> None:
    buffer = make(capacity=20)
    buffer.add(segment(2))
    rows = {name: array for name, array in buffer.rows(0, 2).items() if name != "extras/log_prob"}
    with pytest.raises(StateMismatch, match="extras/log_prob"):
        buffer.load_rows(0, rows)


@KINDS
def test_rows_that_were_overwritten_cannot_be_saved(make: Make) -> None:
    buffer = make(capacity=5)
    buffer.add(segment(8))
    with pytest.raises(ValueError, match="3 to 8 are held"):
        buffer.rows(2, 8)
