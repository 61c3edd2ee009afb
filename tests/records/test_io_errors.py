from __future__ import annotations

import errno
from collections.abc import Callable

import pytest
from tests.records.logs import HERE, Writer, read_all
from tests.records.simulated_disk import SimulatedDisk, keep_everything, keep_nothing, keep_some
from tests.records.test_crashes import calls_of_a_run

from rl4sys.records import LogBroken, LogFull, RecordLog


def run_with(fault: int, call: int) -> tuple[Writer, Exception | None]:
    writer = Writer(SimulatedDisk({call: fault}))
    try:
        writer.run()
    except (OSError, LogBroken) as error:
        return writer, error
    return writer, None


@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("keep", [keep_nothing, keep_everything, keep_some(0), keep_some(1)])
def test_an_error_at_any_call_loses_nothing_acknowledged_even_if_the_power_fails_next(
    fault: int, keep: Callable[[], bool]
) -> None:
    for call in range(calls_of_a_run()):
        writer, _ = run_with(fault, call)
        writer.check(writer.files.rebooted(keep))


@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC])
def test_after_an_error_at_any_call_the_log_can_be_reopened_and_then_survives_a_power_cut(fault: int) -> None:
    for call in range(calls_of_a_run()):
        writer, error = run_with(fault, call)
        if writer.log is not None and error is not None:
            writer.log.close()
        reopened = writer.check(writer.files)
        # What was found at reopening counts as acknowledged from then on.
        writer.acknowledged = read_all(HERE, reopened.first, writer.files)
        writer.tried = {number: {payload} for number, payload in writer.acknowledged.items()}
        writer.check(writer.files.rebooted(keep_nothing))


def test_a_full_disk_at_any_write_does_not_break_the_log() -> None:
    outcomes = [run_with(errno.ENOSPC, call)[1] for call in range(calls_of_a_run())]
    assert sum(error is None for error in outcomes) >= 12


def test_after_a_failed_sync_every_call_raises_the_same_error_until_the_log_is_reopened() -> None:
    disk = SimulatedDisk()
    log = RecordLog(HERE, files=disk)
    log.append([b"lost"])
    disk.faults = {disk.calls: errno.EIO}
    with pytest.raises(LogBroken, match=r"Input/output error.*reopen") as first:
        log.commit()
    for call in (log.commit, lambda: log.append([b"more"]), lambda: log.prune(0)):
        with pytest.raises(LogBroken) as again:
            call()
        assert str(again.value) == str(first.value)
    assert log.broken is not None
    log.close()
    assert RecordLog(HERE, files=disk).append([b"more"]) in (range(1), range(1, 2))


def test_after_a_failed_sync_unsynced_records_are_written_again() -> None:
    disk = SimulatedDisk()
    log = RecordLog(HERE, files=disk)
    log.append([b"a" * 500])
    disk.faults = {disk.calls: errno.EIO}
    with pytest.raises(LogBroken):
        log.commit()
    log.close()
    assert RecordLog(HERE, files=disk).committed == 1
    disk = disk.rebooted(keep_nothing)
    assert RecordLog(HERE, files=disk).cut_bytes == 0
    assert read_all(HERE, 0, disk) == {0: b"a" * 500}


def test_a_full_disk_undoes_the_append_and_the_log_works_once_there_is_space() -> None:
    disk = SimulatedDisk()
    log = RecordLog(HERE, files=disk)
    log.append([b"before"])
    disk.full = True
    for _ in range(3):
        with pytest.raises(LogFull, match="free space"):
            log.append([b"too much" * 100])
    assert log.commit() == 1
    disk.full = False
    assert log.append([b"after"]) == range(1, 2)
    log.commit()
    assert log.broken is None
    disk = disk.rebooted(keep_nothing)
    assert RecordLog(HERE, files=disk).end == 2
    assert read_all(HERE, 0, disk) == {0: b"before", 1: b"after"}
