from __future__ import annotations

import mmap
import os

import numpy as np

from rl4sys.collection import Collector, Rollout
from rl4sys.collection.shared_memory import SharedLayout, anonymous_memory
from rl4sys.policy import PolicySpec

from .worlds import assert_same_segments, chain_lanes, remembering_policy

LANES, STEPS = 3, 6


def filled(rollout: Rollout, policy: PolicySpec, weights: np.ndarray) -> Rollout:
    collector = Collector(chain_lanes(LANES), policy, "local", seed=1)
    collector.load(weights)
    for _ in range(2):
        collector.fill(rollout, version=7)
    collector.close()
    return rollout


def test_a_rollout_in_shared_memory_is_like_any_other() -> None:
    policy, newest = remembering_policy(chain_lanes().spec)
    layout = SharedLayout(policy, LANES, STEPS)
    descriptor = anonymous_memory(layout.size())
    weights, rollouts = layout.map(mmap.mmap(descriptor, 0))
    os.close(descriptor)
    own = filled(Rollout.allocate(Rollout.specs(policy, LANES, STEPS)), policy, newest.blob)
    for rollout in rollouts:
        filled(rollout, policy, newest.blob)
        assert {name: a.tobytes() for name, a in rollout.columns.items()} == {
            name: a.tobytes() for name, a in own.columns.items()
        }
        assert_same_segments(rollout.segments("local"), own.segments("local"))
    assert not weights.any()


def test_both_processes_see_the_same_memory() -> None:
    policy, newest = remembering_policy(chain_lanes().spec)
    layout = SharedLayout(policy, LANES, STEPS)
    descriptor = anonymous_memory(layout.size())
    (one, rollouts), (other, twins) = (layout.map(mmap.mmap(descriptor, 0)) for _ in range(2))
    os.close(descriptor)
    np.copyto(one, newest.blob)
    filled(rollouts[1], policy, newest.blob)
    assert other.tobytes() == newest.blob.tobytes()
    assert_same_segments(rollouts[1].segments("local"), twins[1].segments("local"))
    assert not twins[0].columns["acted"].any()


def test_shared_memory_is_zeroed_and_as_large_as_asked_for() -> None:
    descriptor = anonymous_memory(10_000)
    with mmap.mmap(descriptor, 0) as memory:
        assert memory[:] == bytes(10_000)
    os.close(descriptor)


def test_columns_in_one_memory_do_not_overlap_and_are_aligned() -> None:
    policy, _ = remembering_policy(chain_lanes().spec)
    specs = Rollout.specs(policy, LANES, STEPS)
    memory = bytearray(Rollout.size(specs))
    columns = Rollout.allocate(specs, memoryview(memory)).columns
    for number, column in enumerate(columns.values(), start=1):
        column.fill(number % 2)
        column.view(np.uint8)[...] = number
        assert column.ctypes.data % 8 == 0
    for number, column in enumerate(columns.values(), start=1):
        assert (column.view(np.uint8) == number).all()


def test_segments_own_their_arrays() -> None:
    policy, newest = remembering_policy(chain_lanes().spec)
    rollout = filled(Rollout.allocate(Rollout.specs(policy, LANES, STEPS)), policy, newest.blob)
    columns = list(rollout.columns.values())
    for segment in rollout.segments("local"):
        for array in (*segment.observation.values(), segment.action, segment.reward, *segment.carry.values()):
            assert array.flags.c_contiguous
            assert not any(np.shares_memory(array, column) for column in columns)
