"""Where local segments come from: this process, or a second one that collects while this one learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rl4sys.collection.collector import Collector, Environments
from rl4sys.collection.rollout import Rollout
from rl4sys.environments import EpisodeSummary
from rl4sys.experience import Segment
from rl4sys.policy import PolicySpec
from rl4sys.state import State, require
from rl4sys.weights import Version

CLIENT = "local"


@dataclass(frozen=True, slots=True)
class Collected:
    """One turn of collecting."""

    segments: Sequence[Segment]
    episodes: Sequence[EpisodeSummary]
    """Episodes that ended during it."""


class SteppedSource:
    """Collects in this process: acting and learning take turns, and experience is never older than the policy."""

    def __init__(
        self, environments: Environments, spec: PolicySpec, steps: int, seed: int, client: str = CLIENT
    ) -> None:
        self._client = client
        self._collector = Collector(environments, spec, client, seed)
        self._rollout = Rollout.allocate(Rollout.specs(spec, environments.count, steps))

    def collect(self, newest: Version) -> Collected:
        """Act with the newest version for one turn."""
        self._collector.load(newest.blob)
        self._collector.fill(self._rollout, newest.number)
        return Collected(list(self._rollout.segments(self._client)), self._collector.episodes())

    def state(self) -> State:
        """Where every lane is."""
        return {"collector": self._collector.state()}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, "collector")
        return self._collector.restore(state["collector"])

    def close(self) -> None:
        """Close the environments."""
        self._collector.close()
