"""Flipped bits, and truncated, zeroed or missing files: always detected, and the last good state is loaded."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.checkpoints.test_checkpoints import Rows
from tests.records.test_damage import damage
from tests.storms import scaled

from rl4sys.checkpoints import Checkpoints, NoCheckpoint
from rl4sys.records import DiskOutbox, Durability, RecordsDamaged, RecordsGone
from rl4sys.server.learners.stored_segments import StoredSegment, StoredSegments

TRIALS = scaled(100, 10_000)


@pytest.fixture(autouse=True)
def _disk_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncs: there are no power cuts in these tests."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)


def state(step: int) -> dict[str, Any]:
    return {"step": step, "weights": np.random.default_rng(step).normal(size=30)}


def damaged_copies(sound: Path, tmp_path: Path) -> Any:
    """Copies of a directory, each with one kind of damage."""
    for seed in range(TRIALS):
        hurt = tmp_path / "hurt"
        shutil.copytree(sound, hurt, symlinks=True)
        rng = random.Random(seed)
        places = sorted({path.parent for path in hurt.rglob("*") if path.is_file() and not path.is_symlink()})
        yield seed, hurt, damage_in(rng.choice(places), rng)
        shutil.rmtree(hurt)


def damage_in(directory: Path, rng: random.Random) -> str:
    links = [path for path in directory.iterdir() if path.is_dir() or path.is_symlink()]
    aside = [path.rename(directory.parent / f"aside {path.name}") for path in links]
    what = damage(directory, rng)
    for path in aside:
        path.rename(directory / path.name.removeprefix("aside "))
    return what


def test_a_damaged_checkpoint_is_skipped_for_the_last_good_one(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    tally("damages of checkpoints", TRIALS)
    checkpoints = Checkpoints(tmp_path / "sound" / "checkpoints", keep=3)
    for step in (40, 80, 120):
        checkpoints.save(step, state(step), Rows(step))
    passed_over = 0
    for seed, hurt, what in damaged_copies(tmp_path / "sound", tmp_path):
        reopened = Checkpoints(hurt / "checkpoints", keep=3)
        try:
            loaded: Any = reopened.load()
        except NoCheckpoint:
            # The oldest rows belong to all of them.
            assert "safetensors" in what, f"seed {seed}: {what}"
            passed_over += 1
            continue
        passed_over += loaded.step < 120
        assert loaded.state["weights"].tolist() == state(loaded.step)["weights"].tolist(), f"seed {seed}: {what}"
        rows = np.concatenate([rows["reward"] for _, rows in reopened.replay_rows(loaded)])
        assert rows.tolist() == list(range(loaded.step)), f"seed {seed}: {what}"
        assert loaded.step == 120 or len(loaded.skipped) > 0, f"seed {seed}: {what} went unnoticed"
    assert passed_over > TRIALS / 3


def test_damaged_identities_of_stored_segments_are_refused_if_the_log_needs_them(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    tally("damages of stored names", TRIALS)
    sound = tmp_path / "sound"
    sound.mkdir()
    written = StoredSegments()
    for number in range(50):
        written.note(number, StoredSegment("client", 7, 2 * number, 8, bytes(100)))
    written.write(sound, written.encode())
    for seed, hurt, what in damaged_copies(sound, tmp_path):
        try:
            read = StoredSegments.read(hurt, first=50)
            assert read.deduplication.state() == written.deduplication.state(), f"seed {seed}: {what}"
            assert (read.position, read.clients) == (50, written.clients), f"seed {seed}: {what}"
        except RecordsDamaged:
            continue


@pytest.mark.parametrize("durability", [Durability.FSYNC, Durability.OS])
def test_a_damaged_outbox_is_refused_or_reports_its_losses(
    tmp_path: Path, durability: Durability, caplog: pytest.LogCaptureFixture, tally: Callable[[str, int], None]
) -> None:
    tally("damages of a disk outbox", TRIALS)
    box = DiskOutbox(tmp_path / "sound", 1, durability=durability, file_bytes=600)
    for number in range(30):
        box.offer(json.dumps(number).encode() * 40)
    box.acknowledge(1, range(5))
    kept = [parcel.payload for parcel in box.unsettled()]
    box._log._lock.release()
    oldest = min(path.name for path in (tmp_path / "sound").glob("*.records"))
    reported = 0
    for seed, hurt, what in damaged_copies(tmp_path / "sound", tmp_path):
        caplog.clear()
        try:
            with caplog.at_level(logging.WARNING):
                again = DiskOutbox(hurt, 2, durability=durability)
        except (RecordsDamaged, RecordsGone):
            reported += 1
            continue
        found = [parcel.payload for parcel in again.unsettled()]
        again.close()
        is_reported = "has lost" in caplog.text
        reported += is_reported
        if what == f"remove {oldest}":
            # It looks as if it had been pruned, which an outbox cannot distinguish.
            continue
        # Lost settlements only cause parcels to be sent again.
        assert found[-len(kept) :] == kept or (is_reported and durability is Durability.OS), f"seed {seed}: {what}"
        assert set(found) <= {json.dumps(number).encode() * 40 for number in range(30)}, f"seed {seed}: {what}"
    assert reported > TRIALS / 3
