from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.experience import Ending, Segment
from rl4sys.replay import UniformBuffer

from .histories import history
from .segments import segment
from .test_uniform import buffer_of, drawn

Window = tuple[list[float], float, float, int]
"""Rewards padded with zeros, discount, the clock at the end, and the span."""


def brute_force(segments: list[Segment], capacity: int, n_step: int) -> dict[int, Window]:
    """The windows, found by looking up each step in a table of everything held."""
    steps = [(s, t) for s in segments for t in range(s.steps)]
    held = dict(list(enumerate(steps))[-capacity:])
    table = {(s.stream, s.episode, s.start + t): (s, t) for s, t in held.values()}
    windows = {}
    for number, (s, t) in held.items():
        keys = [(s.stream, s.episode, s.start + t + k) for k in range(n_step)]
        length = next((k for k, key in enumerate(keys) if key not in table), n_step)
        last, at = table[keys[length - 1]]
        rewards = [float(table[key][0].reward[table[key][1]]) for key in keys[:length]]
        end = float(last.observation["clock"][at + 1])
        windows[number] = (rewards + [0.0] * (n_step - length), float(last.discount()[at]), end, length)
    return windows


def from_buffer(buffer: UniformBuffer) -> dict[int, Window]:
    batch = drawn(buffer)
    columns = (batch.ids, batch.reward, batch.discount, batch.next_observation["clock"], batch.span)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {number: tuple(window) for number, *window in rows}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), capacity=st.integers(5, 60), n_step=st.integers(2, 6))
def test_windows_equal_those_of_a_brute_force_search(seed: int, capacity: int, n_step: int) -> None:
    segments = [segment(1, episode=99), *history(seed, segments=20)]
    buffer = buffer_of(capacity, n_step, batch_size=1000)
    for item in segments:
        buffer.add(item)
    assert from_buffer(buffer) == brute_force(segments, capacity, n_step)


def test_a_window_continues_in_the_next_segment() -> None:
    buffer = buffer_of(capacity=9, n_step=3)
    buffer.add(segment(2))
    assert from_buffer(buffer)[1] == ([2, 0, 0], 1, 2, 1)
    buffer.add(segment(2, lane=1))
    buffer.add(segment(2, start=2))
    assert from_buffer(buffer)[1] == ([2, 3, 4], 1, 4, 3)


def test_a_window_stops_where_the_episode_terminates() -> None:
    buffer = buffer_of(capacity=9, n_step=3)
    buffer.add(segment(2, ending=Ending.TERMINATED))
    buffer.add(segment(3, episode=1))
    assert from_buffer(buffer)[0] == ([1, 2, 0], 0, 2, 2)


def test_a_truncated_window_keeps_its_future_value() -> None:
    buffer = buffer_of(capacity=9, n_step=3)
    buffer.add(segment(2, ending=Ending.TRUNCATED))
    buffer.add(segment(3, episode=1))
    assert from_buffer(buffer)[0] == ([1, 2, 0], 1, 2, 2)


def test_streams_without_transitions_in_the_buffer_are_removed() -> None:
    buffer = buffer_of(capacity=6, n_step=2)
    for lane in range(100):
        buffer.add(segment(2, lane=lane))
    tails = np.array(buffer.state()["columns"]["tails"], dtype=object)
    assert tails[:, 2].tolist() == [97, 98, 99]
