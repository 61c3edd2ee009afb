from __future__ import annotations

from pathlib import Path

import pytest
from tests.records.logs import HERE
from tests.records.simulated_disk import SimulatedDisk

from rl4sys.records import LogFull, RecordLog, RecordReader, RecordsDamaged, RecordsGone, verify


def test_a_reader_sees_a_record_only_once_it_is_committed(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    follower = RecordReader(tmp_path)
    log.append([b"a"])
    assert follower.read() == []
    log.commit()
    assert follower.read() == [(0, b"a")]
    assert follower.read() == []


def test_a_reader_moves_from_file_to_file_while_the_writer_rotates(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=100)
    follower = RecordReader(tmp_path)
    seen = []
    for number in range(40):
        log.append([bytes([number]) * 70])
        log.commit()
        if number % 3 == 0:
            seen += follower.read()
    seen += follower.read()
    assert [record.number for record in seen] == list(range(40))


def test_reading_can_start_at_any_record(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=300)
    log.append([bytes([number]) for number in range(5)])
    log.append([bytes([number]) * 100 for number in range(5, 10)])
    log.close()
    for position in range(11):
        records = RecordReader(tmp_path, position).read()
        assert [record.number for record in records] == list(range(position, 10))


def test_a_read_stops_at_its_limit_but_always_makes_progress(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.append([b"x" * 3_000_000] * 2 + [b"y" * 10] * 5)
    log.close()
    reader = RecordReader(tmp_path)
    assert [len(reader.read(limit_bytes=25)) for _ in range(5)] == [1, 1, 3, 2, 0]


def test_a_reader_never_keeps_bytes_of_an_undone_append() -> None:
    disk = SimulatedDisk()
    log = RecordLog(HERE, files=disk)
    follower = RecordReader(HERE, files=disk)
    log.append([b"one", b"two"])
    log.commit()
    disk.full = True
    with pytest.raises(LogFull):
        log.append([b"never", b"x" * 200])
    assert [record.payload for record in follower.read(limit_bytes=1)] == [b"one"]
    disk.full = False
    log.append([b"three"])
    log.commit()
    assert [record.payload for record in follower.read()] == [b"two", b"three"]


def test_bytes_read_before_their_commit_are_read_again_after_it(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    follower = RecordReader(tmp_path)
    log.append([b"one", b"two"])
    log.commit()
    log.append([b"old"])
    assert follower.read(limit_bytes=1) == [(0, b"one")]
    # As if that append had been undone: other bytes in the same place.
    log._length -= 28 + 3
    log._end -= 1
    log.append([b"new"])
    log.commit()
    assert follower.read() == [(1, b"two"), (2, b"new")]


def test_pruned_records_are_refused_by_number(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=100)
    for _ in range(5):
        log.append([b"x" * 100])
    log.prune(3)
    log.close()
    with pytest.raises(RecordsGone, match=r"no longer has record 1; the oldest that is left is 3"):
        RecordReader(tmp_path, 1).read()
    assert verify(tmp_path) == range(3, 5)


def test_a_position_beyond_the_end_is_refused(tmp_path: Path) -> None:
    RecordLog(tmp_path).close()
    with pytest.raises(RecordsGone, match="checkpoint at or before 0"):
        RecordReader(tmp_path, 7).read()


def test_a_directory_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsGone, match="not a log"):
        RecordReader(tmp_path)


def test_a_missing_file_in_the_middle_is_an_error_and_stays_one(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=100)
    for _ in range(5):
        log.append([b"x" * 100])
    log.close()
    (tmp_path / "00000000000000000002.records").unlink()
    reader = RecordReader(tmp_path)
    for _ in range(2):
        with pytest.raises(RecordsDamaged, match="record 2 is damaged or missing"):
            reader.read()
