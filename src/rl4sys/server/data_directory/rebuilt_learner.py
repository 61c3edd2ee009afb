"""A learner whose acknowledged records are lost, built again from what is left; the old directory is kept aside."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory, write_durably
from rl4sys.checkpoints.files import read_manifest
from rl4sys.records import DiskFiles, Record, RecordLog, RecordsDamaged
from rl4sys.records.recovery import create_file
from rl4sys.server.data_directory.learner_check import LearnerCheck
from rl4sys.server.data_directory.log_scan import sound_records
from rl4sys.server.learners.deleted_learners import set_aside, successor_place, take_place
from rl4sys.server.learners.learner_commands import LearnerCommand, decode_record
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.stored_segments import StoredSegments

_BATCH_BYTES = 1 << 20


class Beginning(enum.Enum):
    """What a learner begins with when a part of its log is lost."""

    CHECKPOINT = "--from-checkpoint"
    """The newest sound checkpoint, and the readable records after it."""
    LOG = "--from-log"
    """Nothing, and all readable records."""


class NothingToBeginWith(ValueError):
    """A learner has no sound checkpoint."""


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """How a learner can be built again, and what that costs."""

    check: LearnerCheck
    beginning: Beginning
    position: int
    """The checkpoint that it begins with; 0 for none."""
    kept: int
    """Readable records after it."""
    lost: int
    """Acknowledged records that no state and no readable part of the log has."""
    unlearned: int
    """Records that were learned from and then removed, or that only a checkpoint has which is not used."""
    unidentified: int
    """Segments that the checkpoint has learned from, and whose identities are lost."""

    @property
    def keeps_lineage(self) -> bool:
        """Whether every version that was published comes about again."""
        return self.beginning is Beginning.CHECKPOINT and self.lost == 0

    def describe(self) -> str:
        """What is done, and what is lost, for people."""
        name, lineage = self.check.directory.name, "" if self.keeps_lineage else " as a new lineage"
        start = f"the checkpoint of {self.position} records" if self.position else "untrained weights"
        parts = [f"Build '{name}' again from {start} and {self.kept} readable records of its log{lineage}."]
        if self.lost:
            parts.append(f"{self.lost} acknowledged records are lost.")
        else:
            parts.append("No acknowledged record is lost.")
        if self.unlearned:
            parts.append(f"{self.unlearned} records that were learned from are no longer readable: that is undone.")
        if self.unidentified:
            parts.append(
                f"The identities of up to {self.unidentified} segments are lost: one of them is learned from twice if "
                f"its client never got the acknowledgement and sends it again."
            )
        if not self.keeps_lineage:
            parts.append("Clients follow the new lineage; what waits in their outboxes for the old one is refused.")
        return " ".join(parts)


def plan_rebuilding(check: LearnerCheck, beginning: Beginning) -> Rebuilding:
    """Count what would be kept and lost."""
    newest = check.sound[-1] if check.sound else 0
    if beginning is Beginning.CHECKPOINT and not check.sound:
        raise NothingToBeginWith(
            f"Learner '{check.directory.name}' has no sound checkpoint. Restore a backup, or learn again from the "
            f"readable log with --from-log."
        )
    position = newest if beginning is Beginning.CHECKPOINT else 0
    # Records below were certainly learned from: files of the log are removed only after that.
    learned = position or max(newest, check.log.first if check.log is not None else 0)
    stored = check.stored or 0
    acknowledged = max(check.acknowledged, stored, newest)
    numbers = [record.number for record in _readable(check)]
    return Rebuilding(
        check,
        beginning,
        position,
        kept=sum(number >= position for number in numbers),
        lost=acknowledged - learned - sum(number >= learned for number in numbers),
        unlearned=0 if position else learned - sum(number < learned for number in numbers),
        unidentified=max(0, position - stored) - sum(stored <= number < position for number in numbers),
    )


def rebuild(rebuilding: Rebuilding, now: float) -> Path:
    """Build the learner in a new directory, and give it the name; returns where the old directory is.

    After a crash at any moment either the old or the new directory is in place, or the next server puts the new one
    there.
    """
    directory = rebuilding.check.directory
    data, name = directory.parent.parent, directory.name
    place = successor_place(data, name)
    lineage = Lineage.read(directory)
    (lineage if rebuilding.keeps_lineage else lineage.successor()).write(place)
    if rebuilding.beginning is Beginning.CHECKPOINT:
        _link_checkpoint(directory, place, rebuilding.position)
    if rebuilding.keeps_lineage and (directory / "versions").is_dir():
        _link_files(directory / "versions", place / "versions", os.listdir(directory / "versions"))
    end = _write_log(place / "log", rebuilding.position, _readable(rebuilding.check, rebuilding.position))
    StoredSegments.write(place, _identities(rebuilding.check, end).encode())
    for each in ("orders.json", "setup.json"):
        # The setup last: with it the learner exists.
        if (directory / each).exists():
            write_durably(place / each, (directory / each).read_bytes())
    aside = set_aside(data, name, now)
    take_place(data, place)
    return aside


def _readable(check: LearnerCheck, begin: int = 0) -> Iterator[Record]:
    return sound_records(check.log, begin) if check.log is not None else iter(())


def _identities(check: LearnerCheck, end: int) -> StoredSegments:
    """All identities that are known. Those of lost records stay, so that nothing is learned from twice."""
    try:
        stored = StoredSegments.read(check.directory, first=1)
    except RecordsDamaged:
        stored = StoredSegments()
    for record in _readable(check):
        entry = decode_record(record.payload)
        if not isinstance(entry, LearnerCommand):
            stored.note(record.number, entry)
    stored.position = end
    return stored


def _write_log(log: Path, first: int, records: Iterable[Record]) -> int:
    """A log of these records, numbered from `first` on; returns its end."""
    files = DiskFiles()
    files.make_directory(log)
    create_file(log, files, first).close()
    written = RecordLog(log)
    try:
        waiting, size = [], 0
        for record in records:
            waiting.append(record.payload)
            size += len(record.payload)
            if size >= _BATCH_BYTES:
                written.append(waiting)
                waiting, size = [], 0
        written.append(waiting)
        written.sync()
        return written.end
    finally:
        written.close()


def _link_checkpoint(directory: Path, place: Path, position: int) -> None:
    name = f"{position:012d}"
    _, files, chunks = read_manifest(directory / "checkpoints" / name)
    _link_files(directory / "checkpoints" / name, place / "checkpoints" / name, [*files, "manifest.json"])
    _link_files(directory / "replay", place / "replay", [chunk["file"] for chunk in chunks])


def _link_files(source: Path, target: Path, names: Iterable[str]) -> None:
    """The same files in another directory; they are never changed in place, or copied if they are."""
    names = list(names)
    if not names:
        return
    make_directory(target, mode=0o700)
    for name in names:
        if name.endswith(".versions"):
            write_durably(target / name, (source / name).read_bytes())
        else:
            os.link(source / name, target / name)
    sync_directory(target)
