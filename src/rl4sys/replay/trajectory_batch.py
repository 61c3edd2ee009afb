"""Puts the segments that an on-policy buffer holds together as one batch, one row for each stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays, Ending, Segment, SegmentPack, Sequences, StreamKey


class HeldSegment(NamedTuple):
    """A segment, and how many versions old its policy was when it came."""

    segment: Segment
    age: int

    @property
    def steps(self) -> int:
        """Its steps."""
        return self.segment.steps

    @property
    def ended(self) -> int:
        """Episodes that end in it."""
        return int(self.segment.ending is not Ending.CONTINUES)


class HeldPack(NamedTuple):
    """The same for many segments at once."""

    pack: SegmentPack
    age: int

    @property
    def steps(self) -> int:
        """Their steps."""
        return len(self.pack.reward)

    @property
    def ended(self) -> int:
        """Episodes that end in them."""
        return int((self.pack.ending != Ending.CONTINUES).sum())


def assemble(held: Sequence[HeldSegment | HeldPack]) -> Sequences:
    """One row of B per stream, in the order of first arrival. Packs give the same batch as their segments alone."""
    if any(isinstance(item, HeldPack) for item in held) and not any(map(_needs_segments, held)):
        return _assemble_together(held)
    return _assemble([alone for item in held for alone in _alone(item)])


def _alone(item: HeldSegment | HeldPack) -> Iterator[HeldSegment]:
    if isinstance(item, HeldSegment):
        yield item
    else:
        yield from (HeldSegment(segment, item.age) for segment in item.pack.segments())


def _needs_segments(item: HeldSegment | HeldPack) -> bool:
    """Whether a segment has what only the slower way looks at: memory, or discounts by time."""
    if isinstance(item, HeldPack):
        return bool(item.pack.carry)
    return bool(item.segment.carry) or item.segment.time_discount is not None


def _assemble(held: list[HeldSegment]) -> Sequences:
    """One row of B per stream, in the order of first arrival."""
    streams: dict[StreamKey, list[HeldSegment]] = {}
    for item in held:
        streams.setdefault(item.segment.stream, []).append(item)
    rows = [part for row in streams.values() for part in _with_known_memory(row)]
    offsets = [_offsets(row) for row in rows]
    shape = (len(rows), max(row[-1] for row in offsets))
    template, cells = held[0].segment, shape[0] * shape[1]

    # The rows of B are concatenated here: slices of a single axis are the fastest in numpy.
    observation = {name: _zeros(cells, array) for name, array in template.observation.items()}
    extras = {name: _zeros(cells, array) for name, array in template.extras.items()}
    action, reward = _zeros(cells, template.action), _zeros(cells, template.reward)
    discount, age = np.ones(cells, np.float32), np.zeros(cells, np.int32)
    acted, is_first = np.zeros(cells, np.bool_), np.zeros(cells, np.bool_)

    for number, row in enumerate(rows):
        for offset, (segment, segment_age) in zip(offsets[number], row, strict=False):
            first = number * shape[1] + offset
            last = first + segment.steps
            for name, column in observation.items():
                # T+1 rows: a segment that follows overwrites the last one with its own first row.
                column[first : last + 1] = segment.observation[name]
            for name, column in extras.items():
                column[first:last] = segment.extras[name]
            action[first:last] = segment.action
            reward[first:last] = segment.reward
            age[first:last] = segment_age
            acted[first:last] = True
            is_first[first] = segment.start == 0
            discount[first:last] = segment.discount()

    return Sequences(
        observation=_all_per_stream(observation, shape),
        action=_per_stream(action, shape),
        reward=_per_stream(reward, shape),
        discount=_per_stream(discount, shape),
        acted=_per_stream(acted, shape),
        is_first=_per_stream(is_first, shape),
        age=_per_stream(age, shape),
        extras=_all_per_stream(extras, shape),
        carry={name: np.stack([row[0].segment.carry[name] for row in rows]) for name in template.carry},
        streams=tuple(row[0].segment.stream for row in rows),
    )


class _Headers(NamedTuple):
    """Of each segment in the order of arrival [M]: its row of B, what places it in its stream, and its age."""

    row: Array
    episode: Array
    start: Array
    ending: Array
    steps: Array
    age: Array


def _assemble_together(held: Sequence[HeldSegment | HeldPack]) -> Sequences:
    """As `_assemble`, but with few calls for many short segments."""
    streams: dict[StreamKey, int] = {}
    header = _Headers(*map(np.concatenate, zip(*(_header(item, streams) for item in held), strict=True)))
    first, tail, width = _places(header)
    shape, count = (len(streams), width), len(first)
    cells = shape[0] * shape[1]

    begins = np.cumsum(header.steps) - header.steps
    steps = np.repeat(first - begins, header.steps) + np.arange(header.steps.sum())
    rows = header.steps + 1
    observed = np.repeat(first - begins - np.arange(count), rows) + np.arange(rows.sum())
    # What followed a segment that is continued is the first row of the next one.
    seen = np.ones(len(observed), np.bool_)
    seen[np.cumsum(rows)[tail == 0] - 1] = False
    observed = observed[seen]

    parts = [item.pack if isinstance(item, HeldPack) else item.segment for item in held]
    template = parts[0]

    def scattered(arrays: Sequence[Array], places: Array, of: Array | slice = slice(None)) -> Array:
        column = _zeros(cells, arrays[0])
        column[places] = np.concatenate(arrays)[of]
        return _per_stream(column, shape)

    discount, age = np.ones(cells, np.float32), np.zeros(cells, np.int32)
    acted, is_first = np.zeros(cells, np.bool_), np.zeros(cells, np.bool_)
    acted[steps], age[steps] = True, np.repeat(header.age, header.steps)
    is_first[first] = header.start == 0
    ends = header.ending == Ending.TERMINATED
    discount[(first + header.steps - 1)[ends]] = 0.0
    return Sequences(
        observation={
            name: scattered([part.observation[name] for part in parts], observed, seen) for name in template.observation
        },
        action=scattered([part.action for part in parts], steps),
        reward=scattered([part.reward for part in parts], steps),
        discount=_per_stream(discount, shape),
        acted=_per_stream(acted, shape),
        is_first=_per_stream(is_first, shape),
        age=_per_stream(age, shape),
        extras={name: scattered([part.extras[name] for part in parts], steps) for name in template.extras},
        carry={},
        streams=tuple(streams),
    )


def _header(item: HeldSegment | HeldPack, streams: dict[StreamKey, int]) -> tuple[Array, ...]:
    """The fields of `_Headers` for one item; streams get their rows as they arrive."""
    if isinstance(item, HeldSegment):
        segment = item.segment
        row = streams.setdefault(segment.stream, len(streams))
        numbers = (row, segment.episode, segment.start, int(segment.ending), segment.steps, item.age)
        return tuple(np.array([number], np.int64) for number in numbers)
    pack = item.pack
    lanes, places, inverse = np.unique(pack.lane, return_index=True, return_inverse=True)
    rows = np.zeros(len(lanes), np.int64)
    for place in np.argsort(places):
        stream = StreamKey(pack.client, pack.agent, int(lanes[place]))
        rows[place] = streams.setdefault(stream, len(streams))
    return rows[inverse], pack.episode, pack.start, pack.ending, pack.steps, np.full(len(pack), item.age, np.int64)


def _places(header: _Headers) -> tuple[Array, Array, int]:
    """The first cell [M] of each segment, how many rows [M] follow its steps, and the length of the longest stream."""
    order = np.argsort(header.row, kind="stable")
    row, episode, start, ending, steps, _ = (each[order] for each in header)
    follows = (
        (row[1:] == row[:-1])
        & (episode[1:] == episode[:-1])
        & (ending[:-1] == Ending.CONTINUES)
        & (start[:-1] + steps[:-1] == start[1:])
    )
    tail = np.append(1 - follows, 1)
    ends = np.cumsum(steps + tail)
    begins = ends - steps - tail
    is_last = np.append(row[1:] != row[:-1], True)
    lengths = np.diff(ends[is_last], prepend=0)
    width = int(lengths.max())
    # Where the row begins in what is numbered through all streams, and where it begins in the batch.
    offset = begins - np.repeat(ends[is_last] - lengths, np.diff(np.flatnonzero(is_last), prepend=-1))
    first, after = np.empty_like(begins), np.empty_like(tail)
    first[order], after[order] = row * width + offset, tail
    return first, after, width


def _with_known_memory(row: list[HeldSegment]) -> list[list[HeldSegment]]:
    """A stream, cut where steps are missing within an episode: what the policy remembered is known there again."""
    parts = [row[:1]]
    for earlier, later in pairwise(row):
        is_gap = later.segment.start > 0 and not later.segment.follows(earlier.segment)
        if is_gap and later.segment.carry:
            parts.append([])
        parts[-1].append(later)
    return parts


def _offsets(row: list[HeldSegment]) -> list[int]:
    """The start of each segment of one stream, and finally the total length.

    Where the next segment does not continue the previous one, a row is left for the final observation.
    """
    offsets, end = [0], row[0].segment.steps
    for earlier, later in pairwise(row):
        offsets.append(end if later.segment.follows(earlier.segment) else end + 1)
        end = offsets[-1] + later.segment.steps
    return [*offsets, end + 1]


def _zeros(cells: int, like: Array) -> Array:
    return np.zeros((cells, *like.shape[1:]), like.dtype)


def _per_stream(column: Array, shape: tuple[int, int]) -> Array:
    return column.reshape(*shape, *column.shape[1:])


def _all_per_stream(columns: Arrays, shape: tuple[int, int]) -> Arrays:
    return {name: _per_stream(column, shape) for name, column in columns.items()}
