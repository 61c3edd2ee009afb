from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from rl4sys.experience import Transitions
from rl4sys.replay import BUFFERS, BufferContext, Ratio, UniformBuffer, UnsuitableBuffer
from rl4sys.replay.storage import Mapped

from .histories import history, learn, through_json


def buffer_in(directory: Path | None, n_step: int = 3) -> UniformBuffer:
    storage = None if directory is None else Mapped(directory)
    return UniformBuffer(40, Ratio(0.5, 4, 16), np.random.default_rng(0), n_step, storage)


def assert_same(one: Transitions, other: Transitions) -> None:
    for field in fields(Transitions):
        np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name))


def test_draws_from_mapped_files_equal_those_from_memory(tmp_path: Path) -> None:
    in_memory, mapped = buffer_in(None), buffer_in(tmp_path)
    for item in history(seed=0, segments=60):
        for one, other in zip(learn(in_memory, item), learn(mapped, item), strict=True):
            assert_same(one, other)


def test_mapped_files_leave_nothing_in_the_directory(tmp_path: Path) -> None:
    buffer = buffer_in(tmp_path / "scratch")
    for item in history(seed=0, segments=5):
        buffer.add(item)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_restore_uses_the_saved_rows_and_not_the_mapped_files(tmp_path: Path) -> None:
    segments = list(history(seed=1, segments=80))
    buffer = buffer_in(tmp_path)
    for item in segments[:40]:
        learn(buffer, item)
    rows, other = buffer.rows(buffer.first, buffer.total), buffer_in(tmp_path)
    other.restore(through_json(buffer.state()))
    other.load_rows(buffer.first, rows)
    for item in segments[40:]:
        for one, again in zip(learn(buffer, item), learn(other, item), strict=True):
            assert_same(one, again)


def test_missing_disk_space_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"space|large"):
        Mapped(tmp_path).allocate((1 << 50,), np.float32)


def test_mapped_storage_without_a_directory_is_refused() -> None:
    config = BUFFERS.parse({"type": "uniform", "storage": "mmap"})
    with pytest.raises(UnsuitableBuffer, match=r"set buffer\.storage=memory"):
        config.build(Ratio(1, 0, 8), np.random.default_rng(0), 1, BufferContext())
