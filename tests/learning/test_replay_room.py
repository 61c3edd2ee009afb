from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.learning import ReplayTooLarge, Room, require_room, shrunk
from rl4sys.replay import BUFFERS, BufferConfig

SCHEMA = SegmentSchema((ArraySpec("state", "float32", (17,)),), ArraySpec("action", "float32", (6,)))
ROW = 2 * 17 * 4 + 6 * 4 + 4 + 4 + 8
"""Bytes, with the link to the next one."""
ROOM = Room(memory=100_000_000, disk=50_000_000)


def buffer(**settings: object) -> BufferConfig:
    return BUFFERS.parse({"type": "uniform", "size": 1_000_000, **settings})


def test_what_does_not_fit_is_refused_with_its_cost_and_what_would_fit() -> None:
    with pytest.raises(ReplayTooLarge) as refused:
        require_room(buffer().cost(SCHEMA), ROOM)
    assert str(refused.value) == (
        "buffer.size: the replay does not fit: 1,000,000 × 168 B (2 × state 17 float32, action 6 float32, reward "
        "float32, discount float32) = 168.0 MB, index 8.0 MB. At hand are 100.0 MB of memory, of which a replay may "
        f"take 80%. Free some, or for a new run set buffer.size to at most {80_000_000 // ROW} or "
        "buffer.on_low_memory=shrink; with buffer.storage=mmap the transitions lie on the disk."
    )


def test_what_a_short_run_never_fills_is_not_counted() -> None:
    require_room(buffer().cost(SCHEMA, steps=400_000), ROOM)


def test_the_disk_is_counted_for_what_lies_there() -> None:
    require_room(buffer(storage="mmap", size=200_000).cost(SCHEMA), ROOM)
    with pytest.raises(ReplayTooLarge, match=r"100\.0 MB of memory and 50\.0 MB of disk.*=shrink\.$"):
        require_room(buffer(storage="mmap").cost(SCHEMA), ROOM)


@pytest.mark.parametrize("settings", [{}, {"storage": "mmap"}, {"type": "prioritized"}, {"type": "hindsight"}])
def test_a_replay_that_may_shrink_becomes_as_large_as_fits(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    smaller = shrunk(buffer(on_low_memory="shrink", **settings), SCHEMA, ROOM)
    require_room(smaller.cost(SCHEMA), ROOM)
    larger = smaller.model_copy(update={"size": int(smaller.size * 1.01)})
    with pytest.raises(ReplayTooLarge):
        require_room(larger.cost(SCHEMA), ROOM)
    assert f"SMALLER: buffer.size is {smaller.size:,} instead of 1,000,000" in caplog.text


def test_what_fits_or_may_not_shrink_stays_as_it_is() -> None:
    asked = buffer(on_low_memory="shrink", size=1_000)
    assert shrunk(asked, SCHEMA, ROOM) == asked
    assert shrunk(buffer(), SCHEMA, ROOM) == buffer()


def test_there_may_be_no_room_at_all() -> None:
    nothing = Room(memory=0, disk=0)
    with pytest.raises(ReplayTooLarge, match="at most 0"):
        require_room(shrunk(buffer(on_low_memory="shrink"), SCHEMA, nothing).cost(SCHEMA), nothing)


def test_this_machine_has_room_for_a_small_replay(tmp_path: Path) -> None:
    require_room(buffer(size=100).cost(SCHEMA), Room.at(tmp_path / "not" / "yet"))
