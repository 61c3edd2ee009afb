from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from rl4sys.experience import Array, DecidedBy, Ending, Segment, SegmentPack, Sequences
from rl4sys.replay import OnceFresh, Ratio, TrajectoryBuffer, UniformBuffer
from rl4sys.state import digest

from .segments import segment
from .test_trajectory import assert_equal


def pack_of(segments: list[Segment], *, remembers: bool = False) -> SegmentPack:
    def joined(group: str, name: str) -> Array:
        return np.concatenate([getattr(each, group)[name] for each in segments])

    first = segments[0]
    return SegmentPack(
        client="client",
        agent="agent",
        policy_version=0,
        decided_by=DecidedBy.POLICY,
        lane=np.array([each.stream.lane for each in segments]),
        episode=np.array([each.episode for each in segments]),
        start=np.array([each.start for each in segments]),
        ending=np.array([int(each.ending) for each in segments]),
        steps=np.array([each.steps for each in segments]),
        observation={name: joined("observation", name) for name in first.observation},
        action=np.concatenate([each.action for each in segments]),
        reward=np.concatenate([each.reward for each in segments]),
        extras={name: joined("extras", name) for name in first.extras},
        carry={"hidden": np.stack([each.carry["hidden"] for each in segments])} if remembers else {},
    )


def history(seed: int, count: int, *, remembers: bool = False) -> list[Segment]:
    """Segments of three lanes: whole episodes, episodes in parts, and episodes of which a part was lost."""
    rng = random.Random(seed)
    episode, start = [0] * 3, [0] * 3
    made: list[Segment] = []
    while len(made) < count:
        lane = rng.randrange(3)
        steps, ending = rng.choice([1, 1, 1, 2, 5]), rng.choice(list(Ending))
        item = segment(steps, lane=lane, episode=episode[lane], start=start[lane], ending=ending)
        start[lane] += steps
        if ending is not Ending.CONTINUES:
            episode[lane], start[lane] = episode[lane] + 1, 0
        if rng.random() < 0.9:
            made.append(item if remembers else replace(item, carry={}))
    return made


def fed(buffer: TrajectoryBuffer | UniformBuffer, segments: list[Segment], age: int = 0) -> list[object]:
    """The batches that come of segments one by one."""
    return [batch for each in segments for batch in _added(buffer, each, age)]


def _added(buffer: TrajectoryBuffer | UniformBuffer, each: Segment, age: int) -> list[object]:
    buffer.add(each, age)
    return list(buffer.due())


def fed_packs(
    buffer: TrajectoryBuffer | UniformBuffer,
    segments: list[Segment],
    size: int,
    age: int = 0,
    *,
    remembers: bool = False,
) -> list[object]:
    """The batches that come of the same segments in packs."""
    batches: list[object] = []
    for begin in range(0, len(segments), size):
        pack = pack_of(segments[begin : begin + size], remembers=remembers)
        while len(pack):
            taken = buffer.absorb(pack, age)
            assert not list(buffer.due())
            if taken < len(pack):
                batches += _added(buffer, pack.segment(taken), age)
                taken += 1
            pack = pack.part(taken, len(pack))
    return batches


@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("episodes", [None, 7])
@pytest.mark.parametrize("size", [1, 2, 13, 100])
def test_a_trajectory_buffer_makes_the_same_batches_of_packs(size: int, episodes: int | None, remembers: bool) -> None:
    segments = history(size, 150, remembers=remembers)
    pace = OnceFresh(steps=40, max_age=1, episodes=episodes)
    alone, packed = TrajectoryBuffer(pace), TrajectoryBuffer(pace)
    expected, found = fed(alone, segments), fed_packs(packed, segments, size, remembers=remembers)
    assert len(found) == len(expected) > 3
    for one, other in zip(found, expected, strict=True):
        assert isinstance(one, Sequences)
        assert isinstance(other, Sequences)
        assert_equal(one, other)
    assert packed.counts == alone.counts


def test_a_batch_continues_after_a_restart_with_packs_in_it() -> None:
    segments = history(3, 60)
    whole, stopped, resumed = (TrajectoryBuffer(OnceFresh(steps=100, max_age=1)) for _ in range(3))
    fed_packs(stopped, segments[:20], 8)
    resumed.restore(stopped.state())
    (expected,), (found,) = fed(whole, segments)[:1], fed_packs(resumed, segments[20:], 8)[:1]
    assert isinstance(found, Sequences)
    assert isinstance(expected, Sequences)
    assert_equal(found, expected)


def test_packs_that_are_too_old_are_counted() -> None:
    buffer = TrajectoryBuffer(OnceFresh(steps=40, max_age=1))
    assert buffer.absorb(pack_of(history(0, 10)), age=2) == 10
    assert buffer.counts == {"added": 0, "too_old": sum(each.steps for each in history(0, 10))}


def whole_episodes(count: int, seed: int = 0) -> list[Segment]:
    rng = random.Random(seed)
    endings = [Ending.TERMINATED, Ending.TRUNCATED]
    made = [segment(rng.choice([1, 1, 3]), episode=n, ending=rng.choice(endings)) for n in range(count)]
    return [replace(each, carry={}) for each in made]


@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("capacity", [50, 1_000])
def test_a_replay_buffer_draws_the_same_after_packs(capacity: int, n_step: int) -> None:
    segments = whole_episodes(150) + history(1, 40) + whole_episodes(60, seed=2)
    pace = Ratio(updates_per_step=0.1, warmup=70, batch_size=8)
    alone, packed = (UniformBuffer(capacity, pace, np.random.default_rng(0), n_step) for _ in range(2))
    expected, found = fed(alone, segments), fed_packs(packed, segments, 30)
    assert len(found) == len(expected) > 5
    assert digest({"all": list(map(vars_of, found))}) == digest({"all": list(map(vars_of, expected))})
    assert digest(packed.state()) == digest(alone.state())
    kept = (packed.first, packed.total)
    assert digest(dict(packed.rows(*kept))) == digest(dict(alone.rows(*kept)))


def vars_of(batch: object) -> dict[str, object]:
    return {
        name: getattr(batch, name)
        for name in ("observation", "action", "reward", "next_observation", "discount", "ids")
    }


def test_most_of_a_pack_is_taken_in_at_once() -> None:
    buffer = UniformBuffer(1_000, Ratio(0.1, warmup=100, batch_size=8), np.random.default_rng(0))
    pack = pack_of([replace(segment(1, episode=n, ending=Ending.TERMINATED), carry={}) for n in range(200)])
    assert buffer.absorb(pack) == 109
    assert TrajectoryBuffer(OnceFresh(steps=128, max_age=0)).absorb(pack) == 127


def test_a_buffer_that_extends_another_sees_every_segment() -> None:
    class Mine(UniformBuffer):
        """Counts what it gets."""

    buffer = Mine(1_000, Ratio(0.1, warmup=100, batch_size=8), np.random.default_rng(0))
    assert buffer.absorb(pack_of(whole_episodes(10))) == 0
