from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.experience import Ending, Segment, Sequences
from rl4sys.replay import BUFFERS, BufferContext, OnceFresh, Ratio, SequenceBuffer, UnsuitableBuffer

from .histories import history, through_json
from .segments import segment


class Row(NamedTuple):
    """One row of a stream; all that is not observed or acted is zero."""

    clock: float
    acted: bool
    is_first: bool = False
    reward: float = 0.0
    discount: float = 1.0
    log_prob: float = 0.0
    action: int = 0


def rows_of(batch: Sequences) -> list[tuple[Row, ...]]:
    columns = [batch.observation["clock"], batch.acted, batch.is_first, batch.reward, batch.discount]
    columns += [batch.extras["log_prob"], batch.action]
    return [
        tuple(Row(*values) for values in zip(*(column[b].tolist() for column in columns), strict=True))
        for b in range(len(batch.reward))
    ]


def brute_force(segments: list[Segment], capacity: int, length: int) -> set[tuple[Row, ...]]:
    """All sequences of acted and final rows that begin with an acted one, by listing the rows of each stream."""
    oldest = sum(item.steps for item in segments) - capacity
    streams: dict[Any, list[Row]] = {}
    newest: dict[Any, Segment] = {}
    number = 0
    for item in segments:
        rows = streams.setdefault(item.stream, [])
        follows = item.stream in newest and item.follows(newest[item.stream]) and bool(rows)
        if rows and rows[-1].acted and not follows:
            rows.append(Row(float(newest[item.stream].observation["clock"][-1]), acted=False))
        clock = item.observation["clock"].tolist()
        for t in range(item.steps):
            if number >= oldest:
                values = float(item.reward[t]), float(item.discount()[t]), float(item.extras["log_prob"][t])
                rows.append(Row(clock[t], True, t == 0 and not follows, *values, int(item.action[t])))
            number += 1
        if item.ending is not Ending.CONTINUES and rows:
            rows.append(Row(clock[-1], acted=False))
        newest[item.stream] = item
    windows = (tuple(rows[i : i + length]) for rows in streams.values() for i in range(len(rows) - length + 1))
    return {window for window in windows if window[0].acted}


def buffer_of(capacity: int, length: int, batch_size: int = 300, seed: int = 0) -> SequenceBuffer:
    return SequenceBuffer(capacity, Ratio(1, 0, batch_size), np.random.default_rng(seed), length)


def without_first(windows: Any) -> set[tuple[Row, ...]]:
    """An overwritten step may have been what the first row held continued: there `is_first` is not compared."""
    return {(window[0]._replace(is_first=False), *window[1:]) for window in windows}


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10**6), capacity=st.integers(8, 70), length=st.integers(2, 8))
def test_sequences_equal_those_of_a_brute_force_search(seed: int, capacity: int, length: int) -> None:
    segments = list(history(seed, segments=25))
    buffer = buffer_of(capacity, length, batch_size=2000)
    for item in segments:
        buffer.add(item)
    drawn = rows_of(next(buffer.due(), None) or empty()) if segments else []
    assert without_first(drawn) == without_first(brute_force(segments, capacity, length))


def empty() -> Sequences:
    nothing = np.zeros((0, 0))
    return Sequences({"clock": nothing}, *[nothing] * 6, {"log_prob": nothing}, {}, ())


def test_a_sequence_crosses_episodes_with_a_row_for_the_final_observation() -> None:
    buffer = buffer_of(capacity=20, length=5)
    buffer.add(segment(2, ending=Ending.TRUNCATED))
    buffer.add(segment(3, episode=1))
    batch = next(buffer.due())
    first = next(rows for rows in rows_of(batch) if rows[0].clock == 0)
    assert [row.clock for row in first] == [0, 1, 2, 100, 101]
    assert [row.acted for row in first] == [True, True, False, True, True]
    assert [row.is_first for row in first] == [True, False, False, True, False]
    assert batch.carry == {}


def test_steps_after_lost_ones_start_a_new_part() -> None:
    buffer = buffer_of(capacity=20, length=5)
    buffer.add(segment(2))
    buffer.add(segment(2, start=6))
    (rows,) = set(rows_of(next(buffer.due())))
    assert [row.clock for row in rows] == [0, 1, 2, 6, 7]
    assert [row.is_first for row in rows] == [True, False, False, True, False]


def test_every_start_is_equally_likely() -> None:
    buffer = buffer_of(capacity=100, length=4, batch_size=20_000)
    for lane in range(3):
        buffer.add(segment(10, lane=lane))
    times = np.array(list(Counter(rows[0].clock for rows in rows_of(next(buffer.due()))).values()))
    assert len(times) == 21
    assert ((times - 20_000 / 21) ** 2 / (20_000 / 21)).sum() < 45  # χ² with 20 degrees of freedom: once in a thousand


def test_nothing_is_due_before_a_sequence_can_be_drawn() -> None:
    buffer = buffer_of(capacity=100, length=6, batch_size=2)
    due = []
    for start in range(0, 12, 2):
        for lane in range(2):
            buffer.add(segment(2, lane=lane, start=start))
        due.append(len(list(buffer.due())))
    assert due == [0, 0, 4, 4, 4, 4]


def test_updates_wait_while_no_sequence_is_held() -> None:
    buffer = buffer_of(capacity=12, length=4, batch_size=2)
    buffer.add(segment(4))
    for lane in range(1, 9):
        buffer.add(segment(2, lane=lane))
    assert list(buffer.due()) == []
    buffer.add(segment(2, lane=8, start=2))
    assert len(next(buffer.due()).reward) == 2


@pytest.mark.parametrize("capacity", [30, 60, 5000])
@pytest.mark.parametrize("length", [2, 7])
def test_draws_after_a_restore_equal_those_without_one(capacity: int, length: int) -> None:
    buffer, chunks, saved = buffer_of(capacity, length, 8), {}, 0
    segments = list(history(seed=capacity, segments=120))
    for number, item in enumerate(segments[:60]):
        learn(buffer, item)
        if number % 5 == 4:
            chunks[saved], saved = dict(buffer.rows(saved, buffer.total)), buffer.total
    other = buffer_of(capacity, length, 8, seed=1)
    other.restore(through_json(buffer.state()))
    for first in sorted(chunks, reverse=True):
        other.load_rows(first, chunks[first])
    for item in segments[60:]:
        for one, two in zip(learn(other, item), learn(buffer, item), strict=True):
            for field in fields(Sequences):
                np.testing.assert_equal(getattr(one, field.name), getattr(two, field.name))


def learn(buffer: SequenceBuffer, item: Segment) -> list[Sequences]:
    buffer.add(item)
    return list(buffer.due())


def test_rows_saved_after_the_state_are_ignored() -> None:
    buffer, longer = buffer_of(20, 3, 4), buffer_of(20, 3, 4)
    for each in (buffer, longer):
        each.add(segment(8))
    longer.add(segment(4, start=8))
    other = buffer_of(20, 3, 4)
    other.restore(through_json(buffer.state()))
    other.load_rows(0, longer.rows(0, 12))
    assert rows_of(next(other.due())) == rows_of(next(buffer.due()))


@pytest.mark.parametrize(
    ("size", "pace", "length", "message"),
    [
        (50, Ratio(1, 0, 1), 64, "A sequence has 64 steps, and buffer.size holds 50: raise buffer.size"),
        (1000, Ratio(1, 0, 16), 64, "raise it to at least 1024, or lower algorithm.batch_size"),
        (1000, Ratio(1, 0, 16), 1, "single transitions: set buffer.type=uniform"),
        (1000, OnceFresh(8, 0), 4, "set buffer.type=trajectory"),
    ],
)
def test_a_buffer_that_cannot_hold_a_batch_is_refused(size: int, pace: Any, length: int, message: str) -> None:
    config = BUFFERS.parse({"type": "sequences", "size": size})
    with pytest.raises(UnsuitableBuffer, match=message):
        config.build(pace, np.random.default_rng(0), length, BufferContext())
