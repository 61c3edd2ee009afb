"""Where local segments come from: this process, or a second one that collects while this one learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rl4sys.collection.collector import Collector, Environments
from rl4sys.collection.rollout import Rollout
from rl4sys.environments import EpisodeSummary, Incumbent
from rl4sys.experience import DecidedBy, Segment
from rl4sys.policy import NUMPY, PolicySpec
from rl4sys.state import State, require
from rl4sys.weights import Version

CLIENT = "local"


@dataclass(frozen=True, slots=True)
class Collected:
    """One turn of collecting."""

    segments: Sequence[Segment]
    episodes: Sequence[EpisodeSummary]
    """Episodes that ended during it."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The incumbent decides first, until it has taken so many decisions in all lanes."""

    incumbent: Incumbent
    decisions: int


class SteppedSource:
    """Collects in this process: acting and learning take turns, and experience is never older than the policy."""

    def __init__(
        self,
        environments: Environments,
        spec: PolicySpec,
        steps: int,
        seed: int,
        client: str = CLIENT,
        demonstration: Demonstration | None = None,
        *,
        timed: bool = False,
        kernels: str = NUMPY,
    ) -> None:
        self._client, self._demonstration = client, demonstration
        self._demonstrated = 0
        self._collector = Collector(environments, spec, client, seed, kernels)
        self._rollout = Rollout.allocate(Rollout.specs(spec, environments.count, steps, timed=timed))

    def collect(self, newest: Version) -> Collected:
        """Act with the newest version for one turn."""
        shown = self._demonstration
        if shown is not None and self._demonstrated < shown.decisions:
            self._collector.fill(self._rollout, newest.number, shown.incumbent)
            taken = self._rollout.segments(self._client)
            segments = [replace(segment, decided_by=DecidedBy.INCUMBENT) for segment in taken]
            self._demonstrated += sum(segment.steps for segment in segments)
            return Collected(segments, self._collector.episodes())
        self._collector.load(newest.blob)
        self._collector.fill(self._rollout, newest.number)
        return Collected(list(self._rollout.segments(self._client)), self._collector.episodes())

    def state(self) -> State:
        """Where every lane is."""
        shown = {} if self._demonstration is None else {"demonstrated": self._demonstrated}
        return {"collector": self._collector.state(), **shown}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        if self._demonstration is not None:
            state = dict(state)
            self._demonstrated = int(state.pop("demonstrated", 0))
        require(state, "collector")
        return self._collector.restore(state["collector"])

    def close(self) -> None:
        """Close the environments."""
        self._collector.close()
