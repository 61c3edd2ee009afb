"""Gives every open episode a lane of its own, which a later episode reuses."""

from __future__ import annotations

import heapq
import threading

from rl4sys.client.lane import Lane
from rl4sys.experience import StreamKey

FEW_LANES = 64
"""Up to so many lanes keep the random numbers that they drew ahead."""


class LaneAllocator:
    """Hands out the free lane with the lowest number, or a new lane when all are taken."""

    def __init__(self, client: str, seed: int, first_episode: int, first_step: int = 0) -> None:
        self._client = client
        self._seed = seed
        self._first_episode = first_episode
        self._first_step = first_step
        self._lanes: list[Lane] = []
        self._free: list[int] = []
        self._lock = threading.Lock()

    @property
    def decisions(self) -> int:
        """Decisions taken in all lanes together."""
        return sum(lane.all_decisions for lane in self._lanes)

    @property
    def open(self) -> int:
        """How many lanes have an open episode."""
        return len(self._lanes) - len(self._free)

    def take(self) -> Lane:
        """A lane for a new episode."""
        with self._lock:
            if self._free:
                lane = self._lanes[heapq.heappop(self._free)]
            else:
                stream = StreamKey(self._client, "agent", len(self._lanes))
                lane = Lane(stream, self._seed, self._first_episode, self._first_step)
                self._lanes.append(lane)
        lane.episode += 1
        return lane

    def release(self, lane: Lane) -> None:
        """Free the lane of an episode that has ended."""
        if len(self._lanes) > FEW_LANES:
            lane.noise.trim()
        with self._lock:
            heapq.heappush(self._free, lane.stream.lane)
