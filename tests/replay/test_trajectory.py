from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from rl4sys.experience import Ending, Segment, Sequences
from rl4sys.replay import OnceFresh, TrajectoryBuffer

from .segments import segment


def assembled(*segments: Segment, ages: tuple[int, ...] = ()) -> Sequences:
    buffer = TrajectoryBuffer(OnceFresh(steps=1, max_age=9))
    for number, item in enumerate(segments):
        buffer.add(item, age=ages[number] if ages else 0)
    (batch,) = buffer.due()
    return batch


def assert_equal(one: Sequences, other: Sequences) -> None:
    for field in fields(Sequences):
        a, b = getattr(one, field.name), getattr(other, field.name)
        np.testing.assert_equal(a, b)


def test_a_segment_ends_with_the_observation_that_followed() -> None:
    batch = assembled(segment(3))
    assert batch.observation["clock"].tolist() == [[0, 1, 2, 3]]
    assert batch.observation["state"].shape == (1, 4, 2)
    assert batch.acted.tolist() == [[True, True, True, False]]
    assert batch.reward.tolist() == [[1, 2, 3, 0]]
    assert batch.extras["log_prob"].tolist() == [[-1, -2, -3, 0]]


def test_consecutive_segments_are_joined_without_a_gap() -> None:
    earlier = segment(2)
    shifted = {"state": earlier.observation["state"], "clock": earlier.observation["clock"] + 0.5}
    batch = assembled(replace(earlier, observation=shifted), segment(2, start=2))
    assert batch.observation["clock"].tolist() == [[0.5, 1.5, 2, 3, 4]]
    assert batch.acted.tolist() == [[True, True, True, True, False]]
    assert batch.is_first.tolist() == [[True, False, False, False, False]]


def test_a_lost_segment_leaves_a_row_without_an_action() -> None:
    batch = assembled(replace(segment(2), carry={}), replace(segment(2, start=4), carry={}))
    assert batch.observation["clock"].tolist() == [[0, 1, 2, 4, 5, 6]]
    assert batch.acted.tolist() == [[True, True, False, True, True, False]]
    assert not batch.is_first[0, 3]


def test_a_policy_with_memory_starts_a_stream_of_its_own_after_a_lost_segment() -> None:
    later = segment(2, start=4)
    batch = assembled(segment(2), later)
    assert batch.observation["clock"].tolist() == [[0, 1, 2], [4, 5, 6]]
    assert not batch.is_first[1].any()
    for name, memory in later.carry.items():
        np.testing.assert_array_equal(batch.carry[name][1], memory)


def test_a_new_episode_starts_after_the_final_observation_of_the_previous_one() -> None:
    batch = assembled(segment(2, ending=Ending.TRUNCATED), segment(1, episode=1))
    assert batch.observation["clock"].tolist() == [[0, 1, 2, 100, 101]]
    assert batch.is_first.tolist() == [[True, False, False, True, False]]
    assert batch.acted.tolist() == [[True, True, False, True, False]]
    assert batch.reward.tolist() == [[1, 2, 0, 101, 0]]


def test_only_termination_sets_the_discount_to_zero() -> None:
    batch = assembled(
        segment(2, ending=Ending.TRUNCATED),
        segment(2, episode=1, ending=Ending.TERMINATED),
        segment(1, episode=2),
    )
    assert batch.discount.tolist() == [[1, 1, 1, 1, 0, 1, 1, 1]]


def test_shorter_streams_are_padded_with_rows_without_actions() -> None:
    batch = assembled(segment(1, lane=7), segment(3, lane=2))
    assert [stream.lane for stream in batch.streams] == [7, 2]
    assert batch.acted.tolist() == [[True, False, False, False], [True, True, True, False]]
    assert batch.observation["clock"][0].tolist() == [70_000, 70_001, 0, 0]
    assert batch.discount[0].tolist() == [1, 1, 1, 1]


def test_interleaved_segments_are_ordered_by_stream() -> None:
    batch = assembled(segment(2, lane=0), segment(2, lane=1), segment(1, lane=0, start=2))
    assert batch.observation["clock"].tolist() == [[0, 1, 2, 3], [10_000, 10_001, 10_002, 0]]
    assert batch.carry["hidden"].tolist() == [[0, 0, 0], [10_000, 10_000, 10_000]]
    assert batch.steps == 5


def test_rows_with_actions_hold_the_age_of_their_segment() -> None:
    batch = assembled(segment(2), segment(1, start=2), ages=(3, 1))
    assert batch.age.tolist() == [[3, 3, 1, 0]]
    assert batch.age.dtype == np.int32


def test_segments_that_are_too_old_are_counted_and_not_used() -> None:
    buffer = TrajectoryBuffer(OnceFresh(steps=2, max_age=1))
    buffer.add(segment(5), age=2)
    assert list(buffer.due()) == []
    buffer.add(segment(2, start=5), age=1)
    (batch,) = buffer.due()
    assert batch.steps == 2
    assert buffer.counts == {"added": 2, "too_old": 5}


def test_a_batch_is_due_once_when_there_are_enough_steps() -> None:
    buffer = TrajectoryBuffer(OnceFresh(steps=4, max_age=0))
    buffer.add(segment(3))
    assert list(buffer.due()) == []
    buffer.add(segment(3, start=3))
    assert [batch.steps for batch in buffer.due()] == [6]
    assert list(buffer.due()) == []


def test_a_restore_keeps_an_incomplete_batch() -> None:
    segments = [segment(2, lane=lane, start=start) for start in range(0, 12, 2) for lane in (0, 1)]
    whole, cut, resumed = (TrajectoryBuffer(OnceFresh(steps=24, max_age=9)) for _ in range(3))
    for number, item in enumerate(segments):
        whole.add(item, age=number % 3)
        (cut if number < 11 else resumed).add(item, age=number % 3)
        if number == 10:
            resumed.restore(cut.state())
    (expected,), (got,) = whole.due(), resumed.due()
    assert_equal(got, expected)
    assert resumed.counts == whole.counts


def test_a_batch_is_due_after_enough_episodes_or_steps() -> None:
    buffer = TrajectoryBuffer(OnceFresh(steps=7, max_age=9, episodes=2))
    buffer.add(segment(2))
    buffer.add(segment(1, start=2, ending=Ending.TERMINATED))
    assert list(buffer.due()) == []
    buffer.add(segment(1, episode=1, ending=Ending.TRUNCATED))
    assert [int(batch.acted.sum()) for batch in buffer.due()] == [4]
    buffer.add(segment(7, episode=2))
    assert [int(batch.acted.sum()) for batch in buffer.due()] == [7]
