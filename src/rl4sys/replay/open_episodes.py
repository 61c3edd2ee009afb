"""Where the unfinished episodes of a replay buffer stopped, so that their next segments are linked to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rl4sys.experience import Array, Ending, Segment, StreamKey


class _Tail(NamedTuple):
    """Where an unfinished episode of one stream stopped."""

    episode: int
    next_step: int
    last: int
    """The id of its newest step."""


class Joint(NamedTuple):
    """How a segment is joined to what its stream had before."""

    previous: int
    """The id of the step that it continues, or −1."""
    interrupted: int
    """The id of the newest step of an episode that it leaves unfinished, or −1."""


class OpenEpisodes:
    """The newest step of each stream whose episode has not ended, if it is still held."""

    def __init__(self) -> None:
        self._tails: dict[StreamKey, _Tail] = {}

    def join(self, segment: Segment, last: int, oldest: int) -> Joint:
        """Note a segment whose newest step gets the id `last`; `oldest` is the oldest id that is still held."""
        tail = self._tails.pop(segment.stream, None)
        if segment.ending is Ending.CONTINUES:
            self._tails[segment.stream] = _Tail(segment.episode, segment.start + segment.steps, last)
        # Streams that were silent longest come first. Overwritten steps need no successor: free their memory.
        while self._tails and next(iter(self._tails.values())).last < oldest:
            del self._tails[next(iter(self._tails))]
        if tail is None or tail.last < oldest:
            return Joint(-1, -1)
        continues = tail.episode == segment.episode and tail.next_step == segment.start
        return Joint(tail.last, -1) if continues else Joint(-1, tail.last)

    @property
    def newest(self) -> Mapping[StreamKey, int]:
        """The newest id of each stream."""
        return {stream: tail.last for stream, tail in self._tails.items()}

    @property
    def ids(self) -> Array:
        """The newest id of each stream, in the order of `state`."""
        return np.array([tail.last for tail in self._tails.values()], np.int64)

    def state(self) -> list[list[Any]]:
        """A row of plain values for each stream."""
        return [[*stream, *tail] for stream, tail in self._tails.items()]

    def restore(self, state: list[list[Any]]) -> None:
        """Continue where `state` was taken."""
        self._tails = {StreamKey(*tail[:3]): _Tail(*tail[3:]) for tail in state}
