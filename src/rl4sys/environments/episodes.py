"""What a backend of lanes reports: the outcome of one step, and of each finished episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from rl4sys.environments.episode_info import EpisodeInfo
from rl4sys.experience import Array, Arrays, Ending
from rl4sys.state import State, require

WHOLE_EPISODE = "whole_episode"
"""The key of `info` by which an environment reports at an ending: the return and length of what is counted as the
episode, or None where that continues. Without it, an episode is what was stepped, and its return the sum of rewards."""


class Step(NamedTuple):
    """The outcome of one action in each of N lanes. Arrays are reused: valid until the next call, so copy."""

    observation: Arrays
    """[N, …] what to act on next; after an episode's end, the first observation of the next episode."""
    reward: Array
    """[N] float32."""
    ending: Array
    """[N] uint8, values of `Ending`; 0 where the episode continues."""
    final_observation: Mapping[int, Arrays]
    """Lane → what followed the final action, only for lanes whose episode ended. These are copies."""
    acted: Array | None
    """[N] bool, false where the backend spent this call on a reset; None when every lane acted."""
    elapsed: Array | None = None
    """[N] float32: seconds that the step took, where environments give times; None otherwise."""


class EpisodeSummary(NamedTuple):
    """One finished episode, with its undiscounted return of raw rewards, as the environment counts them."""

    lane: int
    return_: float
    length: int
    ending: Ending
    info: Mapping[str, float] = MappingProxyType({})
    """Means of the numbers that the environment put into `info`, and its last word on `is_success`."""

    def to_fields(self) -> list[Any]:
        """Its fields as plain values; without those that an environment need not give."""
        fields = [self.lane, self.return_, self.length, int(self.ending)]
        return [*fields, dict(self.info)] if self.info else fields

    @classmethod
    def from_fields(cls, fields: Sequence[Any]) -> EpisodeSummary:
        """The inverse of `to_fields`."""
        lane, return_, length, ending, *info = fields
        return cls(lane, return_, length, Ending(ending), *info)


class EpisodeStatistics:
    """Running return (float64) and length of each lane, and the episodes finished since the last `drain`."""

    def __init__(self, count: int) -> None:
        self.returns = [0.0] * count
        """Return so far of each running episode; the owner of the lanes adds to it."""
        self.clock = 0
        """How many steps were taken in all; likewise."""
        # A length is the time since a start: nothing is counted per lane and step.
        self._starts = [0] * count
        self._finished: list[EpisodeSummary] = []
        self.info = EpisodeInfo(count)
        """Numbers in `info`; the owner of the lanes notes them."""

    def length(self, lane: int) -> int:
        """How many steps the running episode of a lane has."""
        return self.clock - self._starts[lane]

    def longest(self) -> int:
        """How many steps the longest running episode has."""
        return self.clock - min(self._starts)

    def finish(self, lane: int, ending: Ending, info: Mapping[str, Any]) -> None:
        """Note the episode of a lane as finished, as the last `info` may report it, and start counting the next."""
        whole = info.get(WHOLE_EPISODE, (self.returns[lane], self.length(lane)))
        if whole is not None:
            return_, length = whole
            self._finished.append(EpisodeSummary(lane, return_, length, ending, self.info.finish(lane)))
        self._restart(lane)

    def forget(self, lane: int) -> None:
        """Restart the counters of a lane; its unfinished episode is left out of the statistics."""
        self.info.forget(lane)
        self._restart(lane)

    def _restart(self, lane: int) -> None:
        self.returns[lane] = 0.0
        self._starts[lane] = self.clock

    def drain(self) -> list[EpisodeSummary]:
        """The episodes finished since the last call, oldest first."""
        finished, self._finished = self._finished, []
        return finished

    def state(self) -> State:
        """Everything needed to continue counting."""
        info = self.info.state()
        return {
            "clock": self.clock,
            "starts": list(self._starts),
            "returns": list(self.returns),
            "finished": [summary.to_fields() for summary in self._finished],
        } | ({"info": info} if info else {})

    def restore(self, state: Any) -> None:
        """Continue counting from a saved state."""
        # Only those of environments with numbers in `info` have these.
        state = {"info": [], **state}
        require(state, "clock", "starts", "returns", "finished", "info")
        self.info.restore(state["info"])
        self.clock = state["clock"]
        self._starts = list(state["starts"])
        self.returns = list(state["returns"])
        self._finished = [EpisodeSummary.from_fields(fields) for fields in state["finished"]]
