"""Returns of the episodes in a log, put together from their segments."""

from __future__ import annotations

from collections import OrderedDict, deque

from rl4sys.experience import Ending, Segment, StreamKey
from rl4sys.state import State, require

_RECENT = 100
_MOST_STREAMS = 10_000
"""Open episodes that are followed; a client that vanished leaves its own open for ever."""


class Episodes:
    """Counts episodes and remembers the returns of the last hundred."""

    def __init__(self) -> None:
        self.count = 0
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._open: OrderedDict[StreamKey, tuple[int, float]] = OrderedDict()

    @property
    def mean_return(self) -> float | None:
        """Of the last episodes; None before the first ended."""
        return sum(self._recent) / len(self._recent) if self._recent else None

    def note(self, segment: Segment) -> None:
        """Follow an episode through one more segment."""
        episode, so_far = self._open.pop(segment.stream, (segment.episode, 0.0))
        return_ = (so_far if episode == segment.episode else 0.0) + float(segment.reward.sum(dtype="float64"))
        if segment.ending is not Ending.CONTINUES:
            self.count += 1
            self._recent.append(return_)
            return
        self._open[segment.stream] = (segment.episode, return_)
        if len(self._open) > _MOST_STREAMS:
            self._open.popitem(last=False)

    def state(self) -> State:
        """Counts, returns and open episodes."""
        open_episodes = [[list(stream), episode, so_far] for stream, (episode, so_far) in self._open.items()]
        return {"count": self.count, "recent": list(self._recent), "open": open_episodes}

    def restore(self, state: State) -> None:
        """Go on where `state` was taken."""
        require(state, "count", "recent", "open")
        self.count = int(state["count"])
        self._recent = deque(state["recent"], maxlen=_RECENT)
        self._open = OrderedDict((StreamKey(*stream), (episode, so_far)) for stream, episode, so_far in state["open"])
