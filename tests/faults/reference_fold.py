"""The reference for a learner: the fold of its whole log at once, and digests to compare."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rl4sys.checkpoints import Checkpoints
from rl4sys.records import DiskFiles, RecordReader
from rl4sys.records.files import File, Lock
from rl4sys.server.learners.learner_commands import LearnerCommand, decode_record
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.workers.fold import Fold
from rl4sys.state import split


class Learned(NamedTuple):
    """A learner's checkpoint, as position and digest."""

    position: int
    version: int
    digest: str


def digest_of_newest(learner: Path) -> Learned:
    """Position and SHA-256 of everything in the newest checkpoint, replayed rows included, however they are cut."""
    checkpoints = Checkpoints(learner / "checkpoints", 2)
    loaded = checkpoints.load()
    tree, arrays = split(loaded.state)
    total = hashlib.sha256(json.dumps(tree, sort_keys=True).encode())
    for name in sorted(arrays):
        total.update(name.encode() + arrays[name].tobytes())
    held = loaded.state["learner"]["buffer"].get("columns", {})
    first = max(0, held["total"] - held["capacity"]) if loaded.chunks else 0
    columns: dict[str, Any] = {}
    for start, rows in checkpoints.replay_rows(loaded):
        for name, array in rows.items():
            columns.setdefault(name, hashlib.sha256()).update(array[max(0, first - start) :].tobytes())
    for name in sorted(columns):
        total.update(name.encode() + columns[name].digest())
    return Learned(int(loaded.state["position"]), loaded.state["learner"]["store"]["latest"], total.hexdigest())


def folded_without_faults(learner: Path, archive: Path, place: Path) -> Learned:
    """The same log, kept files of `archive` included, folded from its first record into a fresh directory."""
    place.mkdir()
    shutil.copy(learner / "setup.json", place)
    shutil.copytree(learner / "log", place / "log")
    for path in archive.glob("*.records") if archive.is_dir() else ():
        if not (place / "log" / path.name).exists():
            shutil.copy(path, place / "log")
    reader = RecordReader(place / "log")
    fold = Fold(place, reader.committed(), lambda event: None)
    while records := reader.read():
        for record in records:
            fold.take(record)
    fold.save()
    fold.close()
    reader.close()
    return digest_of_newest(place)


def stored(log: Path, archive: Path | None = None) -> Iterator[StoredSegment]:
    """Every segment that was ever stored, including those of archived files and each of a pack."""
    records = (record for record in stored_records(log, archive) if isinstance(record, StoredSegment))
    return (alone for record in records for alone in record.alone())


def stored_records(log: Path, archive: Path | None = None) -> Iterator[StoredSegment | LearnerCommand]:
    """Every record that was ever stored, including those of archived files."""
    kept = {path.name: path for path in (archive.glob("*.records") if archive and archive.is_dir() else ())}
    kept |= {path.name: path for path in log.glob("*.records")}
    # Elsewhere: the disk of the log may be full on purpose.
    with TemporaryDirectory(prefix="whole-log-") as place:
        whole = Path(place)
        for name, path in kept.items():
            shutil.copy(path, whole / name)
        shutil.copy(log / "committed", whole)
        reader = RecordReader(whole)
        try:
            while records := reader.read():
                for record in records:
                    yield decode_record(record.payload)
        finally:
            reader.close()


class ArchivingFiles:
    """The disk, with a hard link to every record file that is removed."""

    def __init__(self, archive: Path) -> None:
        self._disk = DiskFiles()
        self._archive = archive

    def remove(self, path: Path) -> None:
        self._archive.mkdir(exist_ok=True)
        kept = self._archive / path.name
        if not kept.exists():
            os.link(path, kept)
        self._disk.remove(path)

    def names(self, directory: Path) -> list[str]:
        return self._disk.names(directory)

    def make_directory(self, directory: Path) -> None:
        self._disk.make_directory(directory)

    def create(self, path: Path) -> File:
        return self._disk.create(path)

    def open(self, path: Path) -> File:
        return self._disk.open(path)

    def open_to_read(self, path: Path) -> File:
        return self._disk.open_to_read(path)

    def rename(self, source: Path, target: Path) -> None:
        self._disk.rename(source, target)

    def sync_directory(self, directory: Path) -> None:
        self._disk.sync_directory(directory)

    def lock(self, path: Path) -> Lock:
        return self._disk.lock(path)
