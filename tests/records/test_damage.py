from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.records.logs import read_all
from tests.storms import scaled

from rl4sys.records import Durability, RecordLog, RecordsDamaged, RecordsGone


@pytest.fixture(autouse=True)
def _disk_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncs: there are no power cuts in these tests, and they would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)


@pytest.fixture
def sound(tmp_path: Path) -> tuple[Path, dict[int, bytes]]:
    """A log of several files as a killed writer leaves it: everything acknowledged, nothing closed."""
    rng = random.Random(0)
    log = RecordLog(tmp_path / "sound", file_bytes=600)
    for _ in range(30):
        log.append([rng.randbytes(rng.randrange(80)) for _ in range(2)])
        log.commit()
    log._lock.release()
    return log.directory, read_all(log.directory)


def damage(directory: Path, rng: random.Random) -> str:
    """Flip a bit, cut a file short, zero or remove one, or append garbage to one."""
    path = rng.choice(sorted(directory.iterdir()))
    contents = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "flip", "flip", "cut", "zero", "remove", "garbage"]) if contents else "remove"
    if kind == "flip":
        contents[rng.randrange(len(contents))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del contents[rng.randrange(len(contents)) :]
    elif kind == "zero":
        begin = rng.randrange(len(contents))
        contents[begin : begin + 50] = bytes(len(contents[begin : begin + 50]))
    elif kind == "garbage":
        contents += rng.randbytes(rng.randrange(1, 100))
    path.unlink()
    if kind != "remove":
        path.write_bytes(contents)
    return f"{kind} {path.name}"


def test_random_damages_are_each_detected_or_harmless(
    sound: tuple[Path, dict[int, bytes]], tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    directory, records = sound
    detected = 0
    trials = scaled(300, 10_000)
    tally("damages of a log", trials)
    for seed in range(trials):
        hurt = tmp_path / "hurt"
        shutil.copytree(directory, hurt)
        what = damage(hurt, random.Random(seed))
        try:
            RecordLog(hurt).close()
            assert read_all(hurt) == records, f"seed {seed}: {what} went unnoticed"
        except (RecordsDamaged, RecordsGone):
            detected += 1
        shutil.rmtree(hurt)
    assert trials / 2 < detected < trials or trials < 30


def test_with_an_old_committed_end_damage_is_still_distinguished_from_a_torn_tail(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    old = (tmp_path / "committed").read_bytes()
    for number in range(5):
        log.append([bytes([number]) * 20])
        log.commit()
    log.close()
    (tmp_path / "committed").write_bytes(old)
    path = tmp_path / "00000000000000000000.records"
    contents = bytearray(path.read_bytes())
    contents[24 + 2 * 48 + 40] ^= 4
    path.write_bytes(contents)
    with pytest.raises(RecordsDamaged, match=r"records, byte 120: record 2 is damaged .* up to 3 were acknowledged"):
        RecordLog(tmp_path)


def test_complete_frames_after_a_torn_one_are_cut_if_none_was_acknowledged(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.append([b"kept"])
    log.commit()
    log.append([b"torn", b"whole"])
    log._lock.release()
    path = tmp_path / "00000000000000000000.records"
    contents = bytearray(path.read_bytes())
    contents[24 + 32 + 30] ^= 1
    path.write_bytes(contents)
    log = RecordLog(tmp_path)
    assert (log.end, log.cut_bytes) == (1, 32 + 33)
    assert read_all(tmp_path) == {0: b"kept"}


def test_records_lost_without_fsync_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = RecordLog(tmp_path, durability=Durability.OS)
    log.append([b"kept", b"hurt", b"behind"])
    log.commit()
    log._lock.release()
    path = tmp_path / "00000000000000000000.records"
    contents = bytearray(path.read_bytes())
    contents[24 + 32 + 30] ^= 1
    path.write_bytes(contents)
    again = RecordLog(tmp_path, durability=Durability.OS)
    assert (again.end, again.lost) == (1, 2)
    assert "lost its last 2 records" in caplog.text
    again.close()
    assert RecordLog(tmp_path).lost == 0
