from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.replay import BUFFERS, AvailableSpace, BufferContext, Ratio, ReplayCost

from .goal_segments import goals

ROWS = 50_000
GOALS = {"goal_reward": {"type": "distance", "threshold": 0.1}}
SCHEMA = SegmentSchema(
    tuple(
        ArraySpec(*spec)
        for spec in (("clock", "float32", ()), *((f"{n}_goal", "float32", (1,)) for n in ("achieved", "desired")))
    ),
    ArraySpec("action", "int64", ()),
    (ArraySpec("log_prob", "float32", ()),),
)


def cost_of(rows: int = ROWS, **settings: Any) -> ReplayCost:
    cost = BUFFERS.parse({**settings, "size": rows}).cost(SCHEMA)
    assert cost is not None
    return cost


@pytest.mark.parametrize(
    "settings", [{"type": "uniform"}, {"type": "prioritized"}, {"type": "hindsight", **GOALS}, {"type": "sequences"}]
)
def test_a_replay_buffer_takes_the_memory_that_was_announced(settings: dict[str, Any]) -> None:
    config = BUFFERS.parse({**settings, "size": ROWS})
    steps, rng = goals(1_000), np.random.default_rng(0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        window = 16 if settings["type"] == "sequences" else 1
        buffer = config.build(Ratio(1, ROWS, 8), rng, window, BufferContext())
        buffer.add(steps)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    expected = cost_of(**settings).memory
    assert expected <= taken <= expected * 1.01 + 20_000


def test_the_cost_names_every_column() -> None:
    assert str(cost_of(1_000_000, type="uniform")) == (
        "1,000,000 × 32 B (clock float32, achieved_goal 1 float32, desired_goal 1 float32, action int64, "
        "reward float32, discount float32, log_prob float32) = 32.0 MB, index 8.0 MB, and 12 B per episode end"
    )


def test_mapped_columns_take_no_memory() -> None:
    cost = cost_of(1_000_000, type="uniform", storage="mmap")
    assert (cost.memory, cost.disk) == (8_000_000, 32_000_000)
    assert "= 32.0 MB on the disk, index 8.0 MB" in str(cost)


def test_a_short_run_fills_only_a_part_of_the_columns() -> None:
    buffer = BUFFERS.parse({"type": "uniform", "size": 1_000_000})
    cost = buffer.cost(SCHEMA, steps=2_000)
    assert cost is not None
    assert cost.memory == 2_000 * 32 + 8_000_000
    assert str(cost).startswith("2,000 of 1,000,000 × 32 B (")
    mapped = BUFFERS.parse({"type": "uniform", "size": 1_000_000, "storage": "mmap"}).cost(SCHEMA, steps=2_000)
    assert mapped is not None
    assert mapped.disk == 32_000_000


def test_a_replay_buffer_must_leave_a_fifth_of_the_available_space() -> None:
    cost = cost_of(1_000_000, type="uniform")
    assert cost.fits(AvailableSpace(memory=50_000_001, disk=0))
    assert not cost.fits(AvailableSpace(memory=49_999_999, disk=None))
    assert cost.fits(AvailableSpace(memory=None, disk=None))
    mapped = replace(cost, is_mapped=True)
    assert mapped.fits(AvailableSpace(memory=10_000_000, disk=40_000_001))
    assert not mapped.fits(AvailableSpace(memory=10_000_000, disk=39_999_999))


def test_a_trajectory_buffer_has_no_cost_worth_mentioning() -> None:
    assert BUFFERS.parse({"type": "trajectory"}).cost(SCHEMA) is None


def test_a_stack_of_frames_costs_its_newest_one() -> None:
    schema = SegmentSchema((ArraySpec("pixels", "uint8", (84, 84, 4)),), ArraySpec("action", "int64", ()))
    cost = BUFFERS.parse({"type": "uniform", "size": 1_000_000}).cost(schema, frames={"pixels": 4})
    assert str(cost) == (
        "1,000,000 × 7,072 B (pixels 7056 uint8, action int64, reward float32, discount float32) = 7.1 GB, "
        "index 16.0 MB, and 28,224 B per episode end"
    )
