"""Returns of the episodes in a log, for the progress of its learner."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from rl4sys.experience import Ending, Segment, SegmentPack, StreamKey
from rl4sys.server.workers.events import VersionOutcome
from rl4sys.state import State, require

_RECENT_EPISODES = 100
_MAX_OPEN_EPISODES = 10_000
"""Unfinished episodes that are followed; a client that vanished never finishes its own."""


_MOST_VERSIONS = 10
"""Versions whose returns are kept apart."""


def _no_returns() -> deque[float]:
    return deque(maxlen=_RECENT_EPISODES)


@dataclass(slots=True)
class _VersionReturns:
    count: int = 0
    recent: deque[float] = field(default_factory=_no_returns)


class EpisodeReturns:
    """Returns of the episodes in a log, added up from their segments: a count and the last hundred returns, of all
    episodes and by version."""

    def __init__(self) -> None:
        self.count = 0
        self._recent = _no_returns()
        self._versions: dict[int, _VersionReturns] = {}
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
            self._add(segment.policy_version, 1, [return_])
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
        recent = pack.part(max(0, len(pack) - _RECENT_EPISODES), len(pack))
        returns = [float(segment.reward.sum(dtype="float64")) for segment in recent.segments()]
        self._add(pack.policy_version, len(pack), returns)

    def outcomes(self) -> tuple[VersionOutcome, ...]:
        """Returns by version, the newest version last."""
        return tuple(
            VersionOutcome(version, found.count, sum(found.recent) / len(found.recent))
            for version, found in sorted(self._versions.items())
        )

    def _add(self, version: int, count: int, recent: Iterable[float]) -> None:
        """Episodes ended with a version; `recent` are the returns of the last of them."""
        self.count += count
        found = self._versions.setdefault(version, _VersionReturns())
        found.count += count
        for return_ in recent:
            self._recent.append(return_)
            found.recent.append(return_)
        if len(self._versions) > _MOST_VERSIONS:
            del self._versions[min(self._versions)]

    def state(self) -> State:
        """Counts, returns and open episodes."""
        open_episodes = [[list(stream), episode, so_far] for stream, (episode, so_far) in self._open.items()]
        versions = [[version, found.count, list(found.recent)] for version, found in self._versions.items()]
        return {"count": self.count, "recent": list(self._recent), "open": open_episodes, "versions": versions}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        # Up to 0.2 returns were not kept by version.
        state = {"versions": [], **state}
        require(state, "count", "recent", "open", "versions")
        self.count = int(state["count"])
        self._recent = deque(state["recent"], maxlen=_RECENT_EPISODES)
        self._open = OrderedDict((StreamKey(*stream), (episode, so_far)) for stream, episode, so_far in state["open"])
        self._versions = {
            int(version): _VersionReturns(int(count), deque(recent, maxlen=_RECENT_EPISODES))
            for version, count, recent in state["versions"]
        }
