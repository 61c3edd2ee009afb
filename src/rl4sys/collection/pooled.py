"""Several collecting processes side by side, for environments that are slower than the learner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rl4sys.collection.pipeline import PipelinedSource, PipelineSetup
from rl4sys.collection.source import CLIENT, Collected
from rl4sys.seeding import Seeds
from rl4sys.state import State, require
from rl4sys.weights import Version


class PooledSource:
    """Each process has its share of the lanes. What they collect is put together in their order, never by who is
    first, so runs are as reproducible as with one, and as old: every rollout but the first lags by one version.
    """

    def __init__(self, setup: PipelineSetup, processes: int) -> None:
        self._lanes = setup.environment.num_envs // processes
        self._sources: list[PipelinedSource] = []
        try:
            for number in range(processes):
                self._sources.append(PipelinedSource(share_of(setup, number, processes)))
        except BaseException:
            # No caller gets this source, so it must be closed here.
            self.close()
            raise

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollouts, having started the next ones."""
        parts = [source.collect(newest) for source in self._sources]
        episodes = [
            episode._replace(lane=number * self._lanes + episode.lane)
            for number, part in enumerate(parts)
            for episode in part.episodes
        ]
        return Collected([segment for part in parts for segment in part.segments], episodes)

    def state(self) -> State:
        """Those of all processes, by number."""
        return {str(number): source.state() for number, source in enumerate(self._sources)}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, *map(str, range(len(self._sources))))
        return [reason for number, source in enumerate(self._sources) for reason in source.restore(state[str(number)])]

    def close(self) -> None:
        """End all of them."""
        for source in self._sources:
            source.close()


def share_of(setup: PipelineSetup, number: int, processes: int) -> PipelineSetup:
    """The setup of one process: its share of the lanes, with its own seeds and streams."""
    lanes = setup.environment.num_envs // processes
    return replace(
        setup,
        environment=setup.environment.model_copy(update={"num_envs": lanes}),
        seed=Seeds(setup.seed).integer("collector", number),
        client=f"{CLIENT}-{number}",
    )
