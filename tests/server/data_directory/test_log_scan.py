from __future__ import annotations

import random
from pathlib import Path

import pytest

from rl4sys.records import RecordLog, RecordsDamaged, verify
from rl4sys.server.data_directory.log_scan import LogScan, scan, sound_records

PAYLOADS = [f"record {number}".encode() for number in range(30)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """30 committed records in five files."""
    writer = RecordLog(tmp_path / "log", file_bytes=250)
    for payload in PAYLOADS:
        writer.append([payload])
        writer.commit()
    writer.close()
    return tmp_path / "log"


def scanned(log: Path) -> LogScan:
    found = scan(log, is_live=False)
    assert found is not None
    return found


def files(log: Path) -> list[Path]:
    return sorted(log.glob("*.records"))


def test_a_sound_log_has_all_records_and_no_gaps(log: Path) -> None:
    found = scanned(log)
    assert (found.first, found.end, found.known, found.gaps, found.torn) == (0, 30, 30, (), None)
    assert [record.payload for record in sound_records(found)] == PAYLOADS


def test_a_missing_file_in_the_middle_is_a_gap_of_its_records(log: Path) -> None:
    begin, end = int(files(log)[2].stem), int(files(log)[3].stem)
    files(log)[2].unlink()
    found = scanned(log)
    assert [(gap.begin, gap.end) for gap in found.gaps] == [(begin, end)]
    assert [record.number for record in sound_records(found)] == [n for n in range(30) if not begin <= n < end]


def test_a_shortened_newest_file_is_a_gap_up_to_the_acknowledged_end(log: Path) -> None:
    newest = files(log)[-1]
    newest.write_bytes(newest.read_bytes()[:-10])
    found = scanned(log)
    assert [(gap.begin, gap.end) for gap in found.gaps] == [(29, 30)]
    assert found.missing(0) == 1


def test_what_is_written_and_not_committed_is_a_torn_tail(log: Path) -> None:
    writer = RecordLog(log)
    writer.append([b"not committed"] * 2)
    found = scanned(log)
    writer.close()
    assert found.gaps == ()
    assert found.end >= 30


def test_a_live_log_ends_with_its_committed_records(log: Path) -> None:
    writer = RecordLog(log)
    writer.append([b"not committed"])
    found = scan(log, is_live=True)
    writer.close()
    assert found is not None
    assert (found.end, found.gaps, found.torn) == (30, (), None)


@pytest.mark.parametrize("seed", range(200))
def test_random_damage_is_found_wherever_the_reader_finds_it_and_all_else_is_read(log: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(files(log))
    data = bytearray(path.read_bytes())
    if rng.random() < 0.3:
        del data[rng.randrange(len(data)) :]
    else:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    try:
        verify(log)
        is_damaged = False
    except RecordsDamaged:
        is_damaged = True
    found = scanned(log)
    read = list(sound_records(found))
    assert bool(found.gaps or found.header_faults) == is_damaged
    assert all(record.payload == PAYLOADS[record.number] for record in read)
    assert len(read) + found.missing(0) == 30
