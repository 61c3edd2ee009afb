"""Each observation is stored once, and draws are those of a list of whole segments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.experience import Array, ArraySpec, Ending, Segment, Transitions
from rl4sys.replay import BufferContext, Ratio, SequenceBuffer
from rl4sys.replay.columns import Columns
from rl4sys.replay.frame_column import FrameStack

from .histories import history, through_json
from .oracle import Oracle
from .segments import segment

FRAMES = 3
STACK = FrameStack(ArraySpec("image", "uint8", (2, 2, 2 * FRAMES)), FRAMES)


def with_images(item: Segment) -> Segment:
    """Adds stacks of frames [2, 2, 2] that identify their step; before the first one it is repeated."""
    clock = item.observation["clock"].astype(np.int64)
    first = clock[0] - item.start
    shown = np.maximum(clock[:, None] - np.arange(FRAMES - 1, -1, -1), first)
    frames = np.stack([shown % 251, shown // 251], axis=-1).astype(np.uint8).reshape(len(clock), 2 * FRAMES)
    image = np.broadcast_to(frames[:, None, None], (len(clock), 2, 2, 2 * FRAMES)).copy()
    return replace(item, observation={**item.observation, "image": image})


def columns_of(capacity: int, n_step: int, *, stacked: bool) -> Columns:
    return Columns(capacity, n_step, stacks={"image": STACK} if stacked else {})


def assert_as_expected(columns: Columns, oracle: Oracle) -> None:
    ids = np.arange(columns.first, columns.total)
    batch = columns.batch(ids, weight=np.ones(len(ids)))
    for name, expected in oracle.transitions(ids).items():
        np.testing.assert_equal(getattr(batch, name), expected)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), capacity=st.integers(2, 60), n_step=st.integers(1, 4), stacked=st.booleans())
def test_transitions_equal_those_of_whole_segments(seed: int, capacity: int, n_step: int, stacked: bool) -> None:
    columns, oracle = columns_of(capacity, n_step, stacked=stacked), Oracle(capacity, n_step)
    for item in map(with_images, history(seed, segments=25)):
        columns.append(item)
        oracle.add(item)
        assert_as_expected(columns, oracle)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), capacity=st.integers(2, 60), reverse=st.booleans(), stacked=st.booleans())
def test_saved_rows_restore_the_same_transitions(seed: int, capacity: int, reverse: bool, stacked: bool) -> None:
    columns, oracle, chunks = columns_of(capacity, 2, stacked=stacked), Oracle(capacity, 2), {}
    segments = [with_images(item) for item in history(seed, segments=40)]
    saved = 0
    for number, item in enumerate(segments):
        columns.append(item)
        oracle.add(item)
        if number % 3 == 2:
            first = max(saved, columns.first)
            chunks[first], saved = dict(columns.rows(first, columns.total)), columns.total
        if number % 9 == 8:
            columns = restored(columns, chunks, columns_of(capacity, 2, stacked=stacked), reverse)
            assert_as_expected(columns, oracle)


def restored(columns: Columns, chunks: dict[int, dict[str, Array]], other: Columns, reverse: bool) -> Columns:
    other.restore(through_json(columns.state()))
    for first in sorted(chunks, reverse=reverse):
        if first + len(chunks[first]["predecessor"]) > columns.first:
            other.load_rows(first, chunks[first])
    return other


def of_earlier_version(columns: Columns, first: int, last: int) -> dict[str, Array]:
    """Rows as versions up to 0.2 saved them: with every observation twice, and stacks whole."""
    rows = {name: a for name, a in columns.rows(first, last).items() if not name.startswith(("final", "observation/"))}
    single = columns.batch(np.arange(first, last), np.ones(last - first))
    rows |= {f"observation/{name}": array for name, array in single.observation.items()}
    return rows | {f"next_observation/{name}": array for name, array in single.next_observation.items()}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), capacity=st.integers(8, 60), reverse=st.booleans(), stacked=st.booleans())
def test_rows_of_earlier_versions_are_loaded(seed: int, capacity: int, reverse: bool, stacked: bool) -> None:
    columns, oracle, chunks = columns_of(capacity, 1, stacked=False), Oracle(capacity, 1), {}
    saved = 0
    for number, item in enumerate(map(with_images, history(seed, segments=30))):
        columns.append(item)
        oracle.add(item)
        if number % 3 == 2:
            first = max(saved, columns.first)
            chunks[first], saved = of_earlier_version(columns, first, columns.total), columns.total
        if number == 14:
            state = {name: columns.state()[name] for name in ("capacity", "total", "tails")}
            other = columns_of(capacity, 1, stacked=stacked)
            other.restore(through_json(state))
            for first in sorted(chunks, reverse=reverse):
                if first + len(chunks[first]["predecessor"]) > columns.first:
                    other.load_rows(first, chunks[first])
            assert_as_expected(other, oracle)
            columns, chunks = other, {}
    assert_as_expected(columns, oracle)


def test_stacks_that_do_not_continue_each_other_are_stored_whole() -> None:
    images = np.random.default_rng(0).integers(0, 256, (21, 2, 2, 2 * FRAMES)).astype(np.uint8)
    columns, oracle = columns_of(12, 1, stacked=True), Oracle(12, 1)
    for start in range(0, 20, 4):
        item = segment(4, start=start)
        item = replace(item, observation={**item.observation, "image": images[start : start + 5]})
        columns.append(item)
        oracle.add(item)
        assert_as_expected(columns, oracle)


def test_rows_do_not_change_once_they_are_saved() -> None:
    columns = columns_of(100, 1, stacked=True)
    columns.append(with_images(segment(4)))
    before = columns.rows(0, 4)
    columns.append(with_images(segment(2, start=9)))
    columns.append(with_images(segment(2, start=11, ending=Ending.TERMINATED)))
    np.testing.assert_equal(dict(columns.rows(0, 4)), dict(before))


def test_a_stack_costs_one_frame_per_step() -> None:
    columns = columns_of(100, 1, stacked=True)
    columns.append(with_images(segment(50)))
    assert columns.rows(0, 50)["observation/image"].shape == (50, 2, 2, 2)


def test_a_batch_is_a_copy() -> None:
    columns = columns_of(10, 1, stacked=True)
    columns.append(with_images(segment(4, ending=Ending.TERMINATED)))
    batch: Transitions = columns.batch(np.array([3, 3]), np.ones(2))
    batch.next_observation["image"][:] = 0
    assert columns.batch(np.array([3]), np.ones(1)).next_observation["image"].any()


def test_frames_that_do_not_divide_an_array_are_refused() -> None:
    context = BufferContext((ArraySpec("image", "uint8", (2, 2, 5)),), frames={"image": 2})
    with pytest.raises(ValueError, match="cannot show 2 frames along its last axis"):
        _ = context.stacks


def test_sequences_show_the_same_stacks_however_they_are_stored() -> None:
    plain, stacked = (
        SequenceBuffer(40, Ratio(1, 0, 32), np.random.default_rng(0), length=6, stacks=stacks)
        for stacks in ({}, {"image": STACK})
    )
    for item in map(with_images, history(seed=3, segments=40)):
        plain.add(item)
        stacked.add(item)
    for one, other, _ in zip(plain.due(), stacked.due(), range(5), strict=False):
        np.testing.assert_array_equal(one.observation["image"], other.observation["image"])
