from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rl4sys.collection import PipelineSetup, PooledSource, SteppedSource, WorkerFailed
from rl4sys.collection.pipeline import share_of
from rl4sys.environments import Grade
from rl4sys.seeding import Seeds
from rl4sys.state import digest, from_text, to_text

from .worlds import SEEDS, SHORT_CHAIN, assert_same_segments, chain_lanes, ppo_for, versions

pytestmark = pytest.mark.slow

ALGORITHM = ppo_for(chain_lanes().spec)
LANES, PROCESSES, STEPS = 4, 2, 7
SETUP = PipelineSetup(
    SHORT_CHAIN.model_copy(update={"num_envs": LANES}),
    ALGORITHM.policies.explore,
    STEPS,
    SEEDS.root,
    5,
    Grade.E1,
    (),
    Path.cwd(),
)
Start = Callable[[], PooledSource]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts sources, and closes them after the test."""
    sources: list[PooledSource] = []

    def make() -> PooledSource:
        sources.append(PooledSource(SETUP, PROCESSES))
        return sources[-1]

    yield make
    for source in sources:
        source.close()


def test_the_processes_together_collect_what_each_would_alone_one_version_late(start: Start) -> None:
    source, used = start(), versions(ALGORITHM, 4)
    alone = []
    for number in range(PROCESSES):
        share = share_of(SETUP, number, PROCESSES)
        lanes = share.environment.lanes(Seeds(share.seed), LANES // PROCESSES, Grade.E1)
        alone.append(SteppedSource(lanes, ALGORITHM.policies.explore, STEPS, seed=5, client=share.client))
    episodes = 0
    for turn, newest in enumerate(used):
        acting = used[max(0, turn - 1)]
        found = source.collect(newest)
        expected = [each.collect(acting) for each in alone]
        assert_same_segments(found.segments, [segment for part in expected for segment in part.segments])
        assert {segment.policy_version for segment in found.segments} == {acting.number}
        lanes_of_episodes = [
            episode.lane + number * (LANES // PROCESSES)
            for number, part in enumerate(expected)
            for episode in part.episodes
        ]
        assert [episode.lane for episode in found.episodes] == lanes_of_episodes
        episodes += len(found.episodes)
    assert episodes > 0


def test_no_two_lanes_share_a_stream_or_its_chance(start: Start) -> None:
    segments = start().collect(versions(ALGORITHM, 1)[0]).segments
    streams = [segment.stream for segment in segments if segment.start == 0]
    assert len({segment.stream for segment in segments}) == LANES
    assert len(set(streams)) == LANES
    assert len({segment.extras["log_prob"].tobytes() for segment in segments}) > LANES // 2


def test_a_restored_pool_continues_exactly(start: Start) -> None:
    original, resumed, used = start(), start(), versions(ALGORITHM, 5)
    for newest in used[:3]:
        original.collect(newest)
    state = original.state()
    assert list(resumed.restore(from_text(to_text(state)))) == []
    for newest in used[3:]:
        assert_same_segments(original.collect(newest).segments, resumed.collect(newest).segments)
    assert digest(original.state()) == digest(resumed.state())


def test_a_process_that_has_ended_is_reported(start: Start) -> None:
    source, used = start(), versions(ALGORITHM, 2)
    source.collect(used[0])
    source._sources[1]._process.kill()
    source._sources[1]._process.wait()
    with pytest.raises(WorkerFailed, match="ended with code -9"):
        source.collect(used[1])
