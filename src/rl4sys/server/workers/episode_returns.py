"""Returns of the episodes in a log, for the progress of its learner."""

from __future__ import annotations

from collections import OrderedDict, deque

from rl4sys.experience import Ending, Segment, SegmentPack, StreamKey
from rl4sys.state import State, require

_RECENT_EPISODES = 100
_MAX_OPEN_EPISODES = 10_000
"""Unfinished episodes that are followed; a client that vanished never finishes its own."""


class EpisodeReturns:
    """Returns of the episodes in a log, added up from their segments: a count, and the last hundred returns."""

    def __init__(self) -> None:
        self.count = 0
        self._recent: deque[float] = deque(maxlen=_RECENT_EPISODES)
        self._open: OrderedDict[StreamKey, tuple[int, float]] = OrderedDict()

    @property
    def mean_return(self) -> float | None:
        """Mean of the last returns; None before the first episode ended."""
        return sum(self._recent) / len(self._recent) if self._recent else None

    def note(self, segment: Segment) -> None:
        """Add one segment to the return of its episode."""
        episode, so_far = self._open.pop(segment.stream, (segment.episode, 0.0))
        return_ = (so_far if episode == segment.episode else 0.0) + float(segment.reward.sum(dtype="float64"))
        if segment.ending is not Ending.CONTINUES:
            self.count += 1
            self._recent.append(return_)
            return
        self._open[segment.stream] = (segment.episode, return_)
        if len(self._open) > _MAX_OPEN_EPISODES:
            self._open.popitem(last=False)

    def note_pack(self, pack: SegmentPack) -> None:
        """Add the segments of a pack, in their order."""
        if self._open or not pack.has_whole_episodes:
            for segment in pack.segments():
                self.note(segment)
            return
        self.count += len(pack)
        recent = pack.part(max(0, len(pack) - _RECENT_EPISODES), len(pack))
        self._recent.extend(float(segment.reward.sum(dtype="float64")) for segment in recent.segments())

    def state(self) -> State:
        """Counts, returns and open episodes."""
        open_episodes = [[list(stream), episode, so_far] for stream, (episode, so_far) in self._open.items()]
        return {"count": self.count, "recent": list(self._recent), "open": open_episodes}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        require(state, "count", "recent", "open")
        self.count = int(state["count"])
        self._recent = deque(state["recent"], maxlen=_RECENT_EPISODES)
        self._open = OrderedDict((StreamKey(*stream), (episode, so_far)) for stream, episode, so_far in state["open"])
