from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.records.logs import HERE, Writer
from tests.records.simulated_disk import Crashed, SimulatedDisk, keep_everything, keep_nothing, keep_some

from rl4sys.records import Durability, RecordReader, RecordsDamaged, RecordsGone

POWER_CUTS = {"nothing": keep_nothing, "everything": keep_everything} | {str(n): keep_some(n) for n in range(6)}


def calls_of_a_run(durability: Durability = Durability.FSYNC) -> int:
    disk = SimulatedDisk()
    Writer(disk, durability).run()
    return disk.calls


def crashed_at(call: int, durability: Durability = Durability.FSYNC) -> Writer:
    writer = Writer(SimulatedDisk({call: None}), durability)
    with pytest.raises(Crashed):
        writer.run()
    return writer


def visible_end(disk: SimulatedDisk) -> int:
    """What a reader could have read before the crash."""
    try:
        return RecordReader(HERE, files=disk.killed()).committed()
    except (RecordsGone, RecordsDamaged):
        # No file yet, or half of a new one: a reader reads nothing from it.
        return 0


@pytest.mark.parametrize("kept", POWER_CUTS)
def test_a_power_cut_at_any_call_loses_nothing_that_was_acknowledged_or_visible(kept: str) -> None:
    for call in range(calls_of_a_run()):
        writer = crashed_at(call)
        visible = visible_end(writer.files)
        log = writer.check(writer.files.rebooted(POWER_CUTS[kept]))
        assert log.end - 1 >= visible


@pytest.mark.parametrize("kept", POWER_CUTS)
def test_without_fsync_a_power_cut_at_any_call_loses_only_the_end(kept: str) -> None:
    for call in range(calls_of_a_run(Durability.OS)):
        writer = crashed_at(call, Durability.OS)
        writer.acknowledged = {}
        writer.check(writer.files.rebooted(POWER_CUTS[kept]))


def test_a_kill_at_any_call_loses_nothing_that_was_appended() -> None:
    for call in range(calls_of_a_run()):
        writer = crashed_at(call)
        writer.acknowledged = dict(writer.appended)
        writer.check(writer.files.killed())


@pytest.mark.parametrize("kept", POWER_CUTS)
def test_a_second_power_cut_at_any_call_of_the_recovery_loses_nothing_either(kept: str) -> None:
    keep: Callable[[], bool] = POWER_CUTS[kept]
    for call in range(5, calls_of_a_run(), 7):
        for second in range(40):
            writer = crashed_at(call)
            disk = writer.files.rebooted(keep)
            disk.faults = {second: None}
            try:
                writer.check(disk)
            except Crashed:
                writer.tried = {number: tried | {b"after"} for number, tried in writer.tried.items()}
                writer.tried |= {number: {b"after"} for number in range(50) if number not in writer.tried}
                writer.check(disk.rebooted(keep))
