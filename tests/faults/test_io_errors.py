"""A disk error at every call in turn: afterwards the old state or the new one is there, never a mixture."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.checkpoints.test_checkpoints import Rows
from tests.records.logs import HERE
from tests.records.simulated_disk import SimulatedDisk, keep_nothing, keep_some

from rl4sys.checkpoints import Checkpoints, NoCheckpoint
from rl4sys.records import DiskOutbox, Durability, LogBroken, OutboxLimits, Overflow, Parcel
from rl4sys.records.outbox import PARCEL_OVERHEAD

LIMITS = OutboxLimits(6 * (PARCEL_OVERHEAD + 60), Overflow.DROP_OLDEST, window=3)


class OutboxLife:
    """Offers, evicts, acknowledges, refuses; tracks after every step what must or may be in the outbox."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.accepted: set[int] = set()
        self.settled: set[int] = set()
        self.unsure: set[int] = set()

    def run(self) -> None:
        self.box = DiskOutbox(HERE, 1, LIMITS, durability=Durability.FSYNC, file_bytes=300, files=self.disk)
        for number in range(14):
            self.unsure = {number}
            offer = self.box.offer(_payload(number))
            self.settled |= {_number(parcel) for parcel in offer.evicted}
            if offer.parcel is not None:
                self.accepted.add(number)
            if number % 3 == 2:
                for parcel in self.box.take(120):
                    # A lost settlement only causes the parcel to be sent again.
                    self.settled.add(_number(parcel))
                    self.box.acknowledge(parcel.epoch, range(parcel.sequence, parcel.sequence + 1))
        self.unsure = set()
        self.box.close()

    def check(self, disk: SimulatedDisk) -> None:
        again = DiskOutbox(HERE, 2, LIMITS, durability=Durability.FSYNC, file_bytes=300, files=disk)
        found = [_number(parcel) for parcel in again.unsettled()]
        assert found == sorted(set(found))
        assert self.accepted - self.settled - self._may_have_made_way() <= set(found)
        assert set(found) <= self.accepted | self.unsure | self.settled
        assert all(parcel.payload == _payload(_number(parcel)) for parcel in again.unsettled())
        assert again.offer(b"%04d" % 99).parcel is not None

    def _may_have_made_way(self) -> set[int]:
        """A failed offer may have evicted the oldest without reporting it."""
        return set(sorted(self.accepted - self.settled)[:1]) if self.unsure - self.accepted else set()


def _payload(number: int) -> bytes:
    return b"%04d" % number * 15


def _number(parcel: Parcel) -> int:
    return int(parcel.payload[:4])


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("after", ["reopened", "killed", "power cut", "torn"])
def test_an_error_at_any_call_of_an_outbox_loses_no_parcel(code: int, after: str) -> None:
    quiet = OutboxLife(SimulatedDisk())
    quiet.run()
    for call in range(quiet.disk.calls):
        life = OutboxLife(SimulatedDisk({call: code}))
        with suppress(OSError, LogBroken):
            life.run()
        left = {
            "reopened": life.disk.killed,
            "killed": life.disk.killed,
            "power cut": lambda life=life: life.disk.rebooted(keep_nothing),
            "torn": lambda life=life, call=call: life.disk.rebooted(keep_some(call)),
        }[after]()
        if after == "reopened":
            # Once more: the first opening may itself have failed because of the error.
            DiskOutbox(HERE, 3, LIMITS, durability=Durability.FSYNC, file_bytes=300, files=left).close()
        life.check(left)


def test_a_read_that_fails_at_any_call_of_a_load_gives_an_older_checkpoint_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=3)
    for step in (10, 20):
        checkpoints.save(step, {"step": step, "weights": np.full(20, step, np.float32)}, Rows(step))
    real, steps = Path.read_bytes, []
    for at in count():
        calls = [0]

        def read(path: Path, at: int = at, calls: list[int] = calls) -> bytes:
            calls[0] += 1
            if calls[0] == at + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", read)
            loaded: Any = Checkpoints(tmp_path / "checkpoints", keep=3).load()
        assert loaded.state["weights"].tolist() == [float(loaded.step)] * 20
        assert loaded.step == 20 or len(loaded.skipped) == 1
        steps.append(loaded.step)
        if calls[0] <= at:
            break
    assert set(steps) == {10, 20}


def test_an_unreadable_disk_is_named_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=3)
    checkpoints.save(10, {"step": 10}, None)

    def read(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_bytes", read)
    with pytest.raises(NoCheckpoint, match="Input/output error"):
        checkpoints.load()
