from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import StreamKey
from rl4sys.replay.episode_spans import UNFINISHED, EpisodeSpans

LANES = [StreamKey("client", lane=lane) for lane in range(4)]


class Truth:
    """The same by lists that are never forgotten."""

    def __init__(self) -> None:
        self.over: dict[int, list[int]] = {}
        self.unfinished: dict[StreamKey, list[int]] = {}

    def add(self, stream: StreamKey, ids: range, *, goes_on: bool, is_over: bool) -> None:
        if not goes_on and stream in self.unfinished:
            self._end(self.unfinished.pop(stream))
        stretch = self.unfinished.pop(stream, [])
        stretch += ids
        if is_over:
            self._end(stretch)
        else:
            self.unfinished[stream] = stretch

    def _end(self, stretch: list[int]) -> None:
        self.over |= dict.fromkeys(stretch, stretch)


def compare(spans: EpisodeSpans, truth: Truth, first: int, total: int) -> None:
    ids = np.arange(first, total)
    places = spans.places(ids).own
    for number, place in zip(ids.tolist(), places.tolist(), strict=True):
        if number not in truth.over:
            assert place == UNFINISHED
            continue
        one = np.array([number])
        listed = spans.places(one)
        begin, last = spans.held_since(listed, first)[0], listed.last[0]
        assert begin <= place <= last
        assert spans.ids(np.arange(begin, last + 1)).tolist() == [i for i in truth.over[number] if i >= first]
        assert spans.ids(np.array([place])) == number


@pytest.mark.parametrize("ends", [0.02, 0.3])
@pytest.mark.parametrize("capacity", [1, 5, 17, 60])
def test_every_stretch_is_listed_as_far_as_it_is_held(capacity: int, ends: float) -> None:
    rng = np.random.default_rng(capacity)
    spans, truth, total = EpisodeSpans(capacity), Truth(), 0
    for _ in range(300):
        stream = LANES[int(rng.integers(len(LANES)))]
        ids = range(total, total + int(rng.integers(1, 5)))
        total, first = ids.stop, max(0, ids.stop - capacity)
        held = stream in truth.unfinished and truth.unfinished[stream][-1] >= first
        goes_on, is_over = held and bool(rng.random() < 0.9), bool(rng.random() < ends)
        spans.add(stream, ids, first, goes_on=goes_on, is_over=is_over)
        truth.add(stream, ids, goes_on=goes_on, is_over=is_over)
        compare(spans, truth, first, total)


def test_a_long_episode_that_ends_late_disturbs_no_other() -> None:
    capacity, total = 20, 0
    spans, truth = EpisodeSpans(capacity), Truth()
    for turn in range(60):
        long_one = turn % 2 == 0
        ids = range(total, total + 3)
        total, first = ids.stop, max(0, ids.stop - capacity)
        is_over = not long_one or turn % 14 == 12
        goes_on = long_one and turn % 14 != 0
        spans.add(LANES[int(long_one)], ids, first, goes_on=goes_on, is_over=is_over)
        truth.add(LANES[int(long_one)], ids, goes_on=goes_on, is_over=is_over)
        compare(spans, truth, first, total)


def test_streams_that_fell_silent_are_forgotten_with_their_transitions() -> None:
    spans = EpisodeSpans(10)
    for number in range(1000):
        stream = StreamKey(f"client {number}")
        spans.add(stream, range(number, number + 1), max(0, number - 9), goes_on=False, is_over=False)
    assert len(spans._unfinished) <= 10
