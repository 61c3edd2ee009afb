from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from zlib import crc32

import pytest
from tests.records.logs import HERE, read_all
from tests.records.simulated_disk import SimulatedDisk, keep_nothing

from rl4sys.records import (
    Durability,
    LogClosed,
    LogInUse,
    MemoryFiles,
    RecordLog,
    RecordReader,
    RecordsDamaged,
)


def test_records_are_read_in_order_with_their_numbers(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log")
    assert log.append([b"a", b""]) == range(2)
    assert log.append([b"b" * 5000]) == range(2, 3)
    log.close()
    assert read_all(tmp_path / "log") == {0: b"a", 1: b"", 2: b"b" * 5000}


def test_numbers_continue_after_reopening(tmp_path: Path) -> None:
    for number in range(3):
        log = RecordLog(tmp_path)
        assert log.append([bytes([number])]) == range(number, number + 1)
        log.close()
    assert list(read_all(tmp_path)) == [0, 1, 2]


def test_files_rotate_by_size_and_old_ones_can_be_pruned(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=1000)
    for _ in range(30):
        log.append([b"x" * 300])
    assert log.prune(before=10) == 9
    assert sorted(os.listdir(tmp_path))[:2] == ["00000000000000000009.records", "00000000000000000012.records"]
    log.close()
    assert list(read_all(tmp_path, 9)) == list(range(9, 30))
    assert RecordLog(tmp_path).first == 9


def test_the_newest_file_is_never_pruned_so_numbers_are_never_used_twice(tmp_path: Path) -> None:
    log = RecordLog(tmp_path, file_bytes=100)
    log.append([b"x" * 200])
    log.append([b"y"])
    assert log.prune(before=1000) == 1
    log.close()
    assert RecordLog(tmp_path).append([b"z"]) == range(2, 3)


def test_the_bytes_are_those_of_the_specification(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.append([b"first"])
    log.commit()
    log.append([b"second"])
    log.close()
    header = b"RL4SRECS" + struct.pack("<IQ", 1, 0)
    first = b"\xf5rec" + struct.pack("<IQQ", 5, 0, 0)
    second = b"\xf5rec" + struct.pack("<IQQ", 6, 1, 1)
    expected = header + struct.pack("<I", crc32(header))
    expected += first + struct.pack("<I", crc32(first + b"first")) + b"first"
    expected += second + struct.pack("<I", crc32(second + b"second")) + b"second"
    ends = b"RL4SCEND" + struct.pack("<QQ", 2, 2)
    assert (tmp_path / "00000000000000000000.records").read_bytes() == expected
    assert (tmp_path / "committed").read_bytes() == ends + struct.pack("<I", crc32(ends))


def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    with pytest.raises(LogInUse, match="Close that writer"):
        RecordLog(tmp_path)
    log.close()
    RecordLog(tmp_path).close()


def test_a_closed_log_refuses_appends(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.close()
    log.close()
    with pytest.raises(LogClosed):
        log.append([b"late"])


def test_a_torn_tail_is_cut_and_reported(tmp_path: Path) -> None:
    log = RecordLog(tmp_path)
    log.append([b"kept"])
    log.close()
    with (tmp_path / "00000000000000000000.records").open("ab") as file:
        file.write(b"\xf5rec torn")
    log = RecordLog(tmp_path)
    assert log.cut_bytes == 9
    assert log.end == 1


def test_a_file_of_another_format_is_refused_by_its_version(tmp_path: Path) -> None:
    RecordLog(tmp_path).close()
    header = b"RL4SRECS" + struct.pack("<IQ", 2, 0)
    (tmp_path / "00000000000000000000.records").write_bytes(header + struct.pack("<I", crc32(header)))
    with pytest.raises(RecordsDamaged, match=r"format 2.*reads format 1"):
        RecordLog(tmp_path)


def test_without_fsync_a_log_opens_after_a_power_cut_that_lost_its_end() -> None:
    disk = SimulatedDisk()
    log = RecordLog(HERE, durability=Durability.OS, file_bytes=1000, files=disk)
    for _ in range(10):
        log.append([b"x" * 300])
        log.commit()
    assert RecordReader(HERE, files=disk).committed() == 10
    disk = disk.rebooted(keep_nothing)
    assert RecordLog(HERE, durability=Durability.OS, files=disk).end == 9
    assert list(read_all(HERE, 0, disk)) == list(range(9))


def test_a_log_in_memory_works_like_one_on_the_disk_and_leaves_no_file(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "log", durability=Durability.MEMORY, file_bytes=100)
    for number in range(20):
        log.append([bytes([number]) * 30])
        log.commit()
    log.prune(10)
    assert isinstance(log.files, MemoryFiles)
    assert read_all(tmp_path / "log", 15, log.files)[19] == bytes([19]) * 30
    log.close()
    assert RecordLog(tmp_path / "log", files=log.files).end == 20
    assert os.listdir(tmp_path) == []


def test_records_need_nothing_but_the_standard_library() -> None:
    command = (
        "import sys, rl4sys.records; "
        "print(sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert loaded.stdout.strip() in ("['__main__', 'rl4sys']", "['rl4sys']")
