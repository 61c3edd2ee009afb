from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.replay import BUFFERS, AvailableSpace, BufferConfig, ReplayTooLarge, fit_replay, require_space

SCHEMA = SegmentSchema((ArraySpec("state", "float32", (17,)),), ArraySpec("action", "float32", (6,)))
ROW = 17 * 4 + 6 * 4 + 4 + 4 + 8
"""Bytes of one transition, index included."""
SPACE = AvailableSpace(memory=100_000_000, disk=50_000_000)


def buffer(**settings: object) -> BufferConfig:
    return BUFFERS.parse({"type": "uniform", "size": 1_000_000, **settings})


def test_a_replay_buffer_that_does_not_fit_is_refused_with_its_cost_and_a_size_that_fits() -> None:
    with pytest.raises(ReplayTooLarge) as refused:
        require_space(buffer().cost(SCHEMA), SPACE)
    assert str(refused.value) == (
        "buffer.size: the replay buffer does not fit: 1,000,000 × 100 B (state 17 float32, action 6 float32, "
        "reward float32, discount float32) = 100.0 MB, index 8.0 MB, and 68 B per episode end. Available: "
        "100.0 MB of memory, of which a replay buffer may take 80%. Free some, or for a new run set "
        f"buffer.size to at most {80_000_000 // ROW} or "
        "buffer.on_low_memory=shrink; with buffer.storage=mmap the transitions are kept on the disk."
    )


def test_rows_that_a_short_run_never_fills_are_not_counted() -> None:
    require_space(buffer().cost(SCHEMA, steps=400_000), SPACE)


def test_mapped_columns_count_against_the_disk() -> None:
    require_space(buffer(storage="mmap", size=200_000).cost(SCHEMA), SPACE)
    with pytest.raises(ReplayTooLarge, match=r"100\.0 MB of memory and 50\.0 MB of disk.*=shrink\.$"):
        require_space(buffer(storage="mmap").cost(SCHEMA), SPACE)


@pytest.mark.parametrize("settings", [{}, {"storage": "mmap"}, {"type": "prioritized"}, {"type": "hindsight"}])
def test_a_replay_buffer_that_may_shrink_takes_the_largest_size_that_fits(
    settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    smaller = fit_replay(buffer(on_low_memory="shrink", **settings), SCHEMA, SPACE)
    require_space(smaller.cost(SCHEMA), SPACE)
    larger = smaller.model_copy(update={"size": int(smaller.size * 1.01)})
    with pytest.raises(ReplayTooLarge):
        require_space(larger.cost(SCHEMA), SPACE)
    assert f"SMALLER: buffer.size is {smaller.size:,} instead of 1,000,000" in caplog.text


def test_a_replay_buffer_that_fits_or_may_not_shrink_keeps_its_size() -> None:
    asked = buffer(on_low_memory="shrink", size=1_000)
    assert fit_replay(asked, SCHEMA, SPACE) == asked
    assert fit_replay(buffer(), SCHEMA, SPACE) == buffer()


def test_no_size_fits_if_no_space_is_left() -> None:
    nothing = AvailableSpace(memory=0, disk=0)
    with pytest.raises(ReplayTooLarge, match="at most 0"):
        require_space(fit_replay(buffer(on_low_memory="shrink"), SCHEMA, nothing).cost(SCHEMA), nothing)


def test_a_small_replay_buffer_fits_on_this_machine(tmp_path: Path) -> None:
    require_space(buffer(size=100).cost(SCHEMA), AvailableSpace.at(tmp_path / "not" / "yet"))
