from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.records import writing_process
from tests.records.failpoint_files import FAILPOINTS
from tests.records.logs import read_all
from tests.storms import scaled

from rl4sys.records import RecordLog, RecordReader


@contextmanager
def writing(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", writing_process.__name__, str(directory), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def acknowledged(lines: list[bytes]) -> dict[int, bytes]:
    """Complete lines only: the last may have been cut by the kill."""
    whole = [line.rstrip(b"\n").split(b" ", 1) for line in lines if line.endswith(b"\n")]
    return {int(number): payload for number, payload in whole}


def require_order(records: dict[int, bytes]) -> None:
    """Nothing twice, and each thread's records in the order in which it wrote them."""
    names = [tuple(payload.split()[:3]) for payload in records.values()]
    assert len(set(names)) == len(names)
    for writer in {name[:2] for name in names}:
        turns = [int(name[2]) for name in names if name[:2] == writer]
        assert turns == list(range(turns[0], turns[0] + len(turns)))


@pytest.mark.slow
def test_kills_lose_no_acknowledged_record_repeat_none_and_keep_the_order(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    kills = scaled(20, 1_000)
    tally("kill -9 of a log's writer", kills)
    rng = random.Random(20)
    told: dict[int, bytes] = {}
    followed: dict[int, bytes] = {}
    RecordLog(tmp_path).close()
    follower = RecordReader(tmp_path)
    for kill in range(kills):
        with writing(tmp_path, str(kill)) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(rng.randrange(1, 150))]
            followed |= dict(follower.read())
            process.kill()
            lines += process.stdout.readlines()
        told |= acknowledged(lines)
    RecordLog(tmp_path).close()
    followed |= dict(follower.read(limit_bytes=1 << 30))
    records = read_all(tmp_path)
    assert len(told) > 25 * kills
    assert told.items() <= records.items()
    assert followed == records
    require_order(records)


@pytest.mark.slow
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_a_death_at_any_failpoint_loses_no_acknowledged_record(
    failpoint: str, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    turns = scaled(1, 50)
    tally("kills of a log's writer at named failpoints", turns)
    for turn in range(turns):
        # The first write belongs to the creation; a truncation happens once.
        die_and_open_again(tmp_path / str(turn), failpoint, 1 if "truncate" in failpoint else 2 + turn % 5)


def die_and_open_again(tmp_path: Path, failpoint: str, times: int) -> None:
    log = RecordLog(tmp_path)
    first = dict(zip(log.append([b"0 0 0", b"0 0 1"]), [b"0 0 0", b"0 0 1"], strict=True))
    log.close()
    newest = tmp_path / "00000000000000000000.records"
    newest.write_bytes(newest.read_bytes() + b"a torn tail to truncate")
    with writing(tmp_path, "1", failpoint, str(times)) as process:
        assert process.stdout is not None
        told = acknowledged(process.stdout.readlines())
        assert process.wait() == 137
    log = RecordLog(tmp_path)
    records = read_all(tmp_path, log.first)
    still_there = {number: payload for number, payload in (first | told).items() if number >= log.first}
    assert still_there.items() <= records.items()
    assert log.first <= max(0, max(told, default=0) - 50)
    require_order(records)
    log.close()
