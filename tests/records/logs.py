"""Small logs, and their invariants."""

from __future__ import annotations

from pathlib import Path

from tests.records.simulated_disk import SimulatedDisk

from rl4sys.records import Durability, Files, LogFull, RecordLog, RecordReader

HERE = Path("/log")
FILE_BYTES = 400


def read_all(directory: Path, first: int = 0, files: Files | None = None) -> dict[int, bytes]:
    reader = RecordReader(directory, first, files=files)
    found: dict[int, bytes] = {}
    while records := reader.read():
        found |= dict(records)
    reader.close()
    return found


class Writer:
    """Appends distinct records, and remembers which were tried, acknowledged and pruned."""

    def __init__(self, files: SimulatedDisk, durability: Durability = Durability.FSYNC) -> None:
        self.files = files
        self.durability = durability
        self.tried: dict[int, set[bytes]] = {}
        self.appended: dict[int, bytes] = {}
        self.acknowledged: dict[int, bytes] = {}
        self.pruned_before = 0
        self.log: RecordLog | None = None

    def run(self, rounds: int = 12) -> None:
        """Appends in groups of three, commits every second time, rotates several times, prunes once, closes."""
        self.log = log = RecordLog(HERE, durability=self.durability, file_bytes=FILE_BYTES, files=self.files)
        for turn in range(rounds):
            self.append(log, turn)
            if turn % 2:
                log.commit()
                self.acknowledged |= self.appended
            if turn == rounds - 3:
                self.pruned_before = 12
                log.prune(self.pruned_before)
        log.close()
        self.acknowledged |= self.appended

    def append(self, log: RecordLog, turn: int) -> None:
        for attempt in range(2):
            payloads = [f"turn {turn}, attempt {attempt}, record {place} ".encode() * place for place in range(3)]
            for number, payload in zip(range(log.end, log.end + 3), payloads, strict=True):
                self.tried.setdefault(number, set()).add(payload)
            try:
                self.appended |= dict(zip(log.append(payloads), payloads, strict=True))
                return
            except LogFull:
                continue
        raise AssertionError("The disk was full twice in a row.")

    def check(self, files: Files) -> RecordLog:
        """Open the log again: all acknowledged records are there, no others, and it works."""
        log = RecordLog(HERE, file_bytes=FILE_BYTES, files=files)
        found = read_all(HERE, log.first, files)
        assert log.first <= self.pruned_before
        assert list(found) == list(range(log.first, log.end))
        kept = {number: payload for number, payload in self.acknowledged.items() if number >= self.pruned_before}
        assert kept.items() <= found.items()
        assert all(payload in self.tried[number] for number, payload in found.items())
        after = log.append([b"after"])
        log.commit()
        assert read_all(HERE, after.start, files) == {after.start: b"after"}
        return log
