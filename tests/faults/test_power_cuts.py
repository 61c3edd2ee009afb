"""A power cut, unlike a kill, loses everything that was not synced: tried at every point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.checkpoints.test_checkpoints import Rows
from tests.faults.power_cut import Watched

from rl4sys.checkpoints import Checkpoints, NoCheckpoint
from rl4sys.server.learners.stored_segments import StoredSegment, StoredSegments

EAGER = pytest.mark.parametrize("eager", [False, True], ids=["names wait", "names at once"])


@EAGER
def test_a_power_cut_at_any_point_keeps_saved_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eager: bool
) -> None:
    root = tmp_path / "run"
    root.mkdir()
    saved = [0]

    def look(left: Path) -> None:
        checkpoints = Checkpoints(left / "checkpoints", keep=2)
        checkpoints.tidy()
        try:
            loaded: Any = checkpoints.load()
        except NoCheckpoint:
            assert saved == [0], f"checkpoint {saved[-1]} was saved, and is gone"
            return
        assert loaded.step >= saved[-1]
        assert loaded.state["weights"].tolist() == [float(loaded.step)] * 20
        rows = np.concatenate([rows["reward"] for _, rows in checkpoints.replay_rows(loaded)])
        assert rows[-1] == loaded.step - 1

    watched = Watched(root, eager, look)
    with monkeypatch.context() as patch:
        watched.watch(patch)
        checkpoints = Checkpoints(root / "checkpoints", keep=2)
        for step in (10, 20, 30, 40):
            checkpoints.save(step, {"weights": np.full(20, step, np.float32)}, Rows(step))
            saved.append(step)
    assert watched.looks > 60


@EAGER
def test_a_power_cut_at_any_point_keeps_the_identities_of_stored_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eager: bool
) -> None:
    root = tmp_path / "learner"
    root.mkdir()
    written = [0]
    stored = StoredSegments()

    def look(left: Path) -> None:
        found = StoredSegments.read(left, first=0)
        assert found.position >= written[-1]
        assert all(("a", 1, number) in found.deduplication for number in range(found.position))

    watched = Watched(root, eager, look)
    with monkeypatch.context() as patch:
        watched.watch(patch)
        for number in range(5):
            stored.note(number, StoredSegment("a", 1, number, 8, bytes(100)))
            stored.write(root, stored.encode())
            written.append(number + 1)
    assert watched.looks >= 20
