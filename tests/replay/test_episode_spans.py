from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import StreamKey
from rl4sys.replay.episode_spans import UNFINISHED, EpisodeSpans

LANES = [StreamKey("client", lane=lane) for lane in range(4)]


class Truth:
    """The same with plain lists that keep everything."""

    def __init__(self) -> None:
        self.over: dict[int, list[int]] = {}
        self.unfinished: dict[StreamKey, list[int]] = {}

    def add(self, stream: StreamKey, ids: range, *, continues: bool, is_over: bool) -> None:
        if not continues and stream in self.unfinished:
            self._end(self.unfinished.pop(stream))
        span = self.unfinished.pop(stream, [])
        span += ids
        if is_over:
            self._end(span)
        else:
            self.unfinished[stream] = span

    def _end(self, span: list[int]) -> None:
        self.over |= dict.fromkeys(span, span)


def compare(spans: EpisodeSpans, truth: Truth, first: int, total: int) -> None:
    ids = np.arange(first, total)
    positions = spans.positions(ids).own
    for number, position in zip(ids.tolist(), positions.tolist(), strict=True):
        if number not in truth.over:
            assert position == UNFINISHED
            continue
        one = np.array([number])
        listed = spans.positions(one)
        begin, last = spans.first_held(listed, first)[0], listed.last[0]
        assert begin <= position <= last
        assert spans.ids(np.arange(begin, last + 1)).tolist() == [i for i in truth.over[number] if i >= first]
        assert spans.ids(np.array([position])) == number


@pytest.mark.parametrize("ends", [0.02, 0.3])
@pytest.mark.parametrize("capacity", [1, 5, 17, 60])
def test_every_span_lists_the_transitions_that_are_held(capacity: int, ends: float) -> None:
    rng = np.random.default_rng(capacity)
    spans, truth, total = EpisodeSpans(capacity), Truth(), 0
    for _ in range(300):
        stream = LANES[int(rng.integers(len(LANES)))]
        ids = range(total, total + int(rng.integers(1, 5)))
        total, first = ids.stop, max(0, ids.stop - capacity)
        held = stream in truth.unfinished and truth.unfinished[stream][-1] >= first
        continues, is_over = held and bool(rng.random() < 0.9), bool(rng.random() < ends)
        spans.add(stream, ids, first, continues=continues, is_over=is_over)
        truth.add(stream, ids, continues=continues, is_over=is_over)
        compare(spans, truth, first, total)


def test_a_long_episode_that_ends_late_leaves_the_others_unchanged() -> None:
    capacity, total = 20, 0
    spans, truth = EpisodeSpans(capacity), Truth()
    for turn in range(60):
        long_one = turn % 2 == 0
        ids = range(total, total + 3)
        total, first = ids.stop, max(0, ids.stop - capacity)
        is_over = not long_one or turn % 14 == 12
        continues = long_one and turn % 14 != 0
        spans.add(LANES[int(long_one)], ids, first, continues=continues, is_over=is_over)
        truth.add(LANES[int(long_one)], ids, continues=continues, is_over=is_over)
        compare(spans, truth, first, total)


def test_streams_without_transitions_in_the_buffer_are_removed() -> None:
    spans = EpisodeSpans(10)
    for number in range(1000):
        stream = StreamKey(f"client {number}")
        spans.add(stream, range(number, number + 1), max(0, number - 9), continues=False, is_over=False)
    assert len(spans._unfinished) <= 10
