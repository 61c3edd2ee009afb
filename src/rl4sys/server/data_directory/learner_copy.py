"""A copy of one learner while a server may be using it: a state that it could have had after a crash at one moment.

Three rules make it consistent without stopping anything. First, the files of the log are opened before anything else is
looked at, so that what the server removes meanwhile can still be read, and every checkpoint and every file of
identities that is found covers what was removed before. Second, everything that must not be ahead of the log (the
checkpoint, the identities, the published versions) is read before the end of the log. Third, records are copied up to
that end only. If the directory is replaced, or its lineage changes meanwhile, the copy begins again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rl4sys.checkpoints.files import CheckpointDamaged, Chunk, read_manifest
from rl4sys.failpoints import failpoint
from rl4sys.records.committed_end import Ends, encode_ends
from rl4sys.records.frames import HEADER_BYTES, file_name, first_numbers
from rl4sys.server.data_directory.backup_files import BackupFiles
from rl4sys.server.data_directory.backup_manifest import BackedUpLearner, FileChecks
from rl4sys.server.data_directory.log_scan import published_ends, sound_frames
from rl4sys.server.learners.learner_setup import is_learner
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.storage_watch import identity
from rl4sys.server.learners.stored_segments import StoredSegments

_ATTEMPTS = 5
_CHUNK = 1 << 20
_SMALL = ("lineage.json", "setup.json")
"""The setup of a learner never changes, and its lineage only by a decision of an operator."""


class LearnerDamaged(Exception):
    """A learner cannot be copied so that a server could use it."""


class LearnerGone(Exception):
    """A learner was deleted while it was copied."""


class _Changed(Exception):
    """The server has replaced or removed something that belongs together."""


class _OpenCheckpoint(NamedTuple):
    step: int
    manifest: bytes
    files: dict[str, tuple[int, FileChecks]]
    """The descriptor of each file, by its path within the learner's directory, and what must be in it."""


def copy_learner(directory: Path, files: BackupFiles) -> BackedUpLearner:
    """Copy a learner into a backup, or raise `LearnerDamaged` or `LearnerGone`; then nothing is left of it there."""
    place = f"learners/{directory.name}"
    problem = ""
    for _ in range(_ATTEMPTS):
        files.remove(place)
        try:
            with ExitStack() as opened:
                return _copy(directory, files, place, opened)
        except (_Changed, FileNotFoundError) as error:
            if not is_learner(directory):
                files.remove(place)
                raise LearnerGone(f"{directory.name} was deleted meanwhile.") from error
            problem = str(error)
    files.remove(place)
    raise LearnerDamaged(f"{problem} See: rl4sys data check {directory.parent.parent}")


def _copy(directory: Path, files: BackupFiles, place: str, opened: ExitStack) -> BackedUpLearner:
    before = identity(directory), _small_files(directory)
    log = _open_log(directory / "log", {}, opened)
    checkpoints = _open_checkpoints(directory, opened)
    failpoint("backup opened")
    stored = _copy_identities(directory, files, place)
    if (directory / "orders.json").exists():
        files.add(f"{place}/orders.json", [(directory / "orders.json").read_bytes()])
    for path in sorted((directory / "versions").glob("*.versions")):
        files.add(f"{place}/versions/{path.name}", _chunks(opened.enter_context(path.open("rb")).fileno()))
    for path in sorted((directory / "tensorboard").glob("events.*")):
        files.add(f"{place}/tensorboard/{path.name}", _chunks(opened.enter_context(path.open("rb")).fileno()))
    failpoint("backup before end of log")
    # From here on nothing may be added that could be ahead of the log.
    ends = published_ends(directory / "log")
    if log and ends is None:
        raise _Changed(f"{directory / 'log'} has no readable file 'committed'.")
    end = ends.committed if ends is not None else 0
    log = _open_log(directory / "log", log, opened)
    step = _copy_checkpoint(checkpoints, files, place)
    if min(log, default=0) > min(step or 0, stored):
        raise _Changed(
            f"{directory / 'log'} begins with record {min(log)}: a sound checkpoint or identities are missing."
        )
    _copy_log(directory / "log", log, end, min(step or 0, stored), files, f"{place}/log")
    if (identity(directory), _small_files(directory)) != before:
        raise _Changed(f"{directory} was replaced, or its lineage changed.")
    for name, data in before[1].items():
        files.add(f"{place}/{name}", [data])
    return BackedUpLearner(end, step, Lineage.read(directory).id)


def _small_files(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in _SMALL if (directory / name).exists()}


def _open_log(log: Path, known: dict[int, int], opened: ExitStack) -> dict[int, int]:
    """Descriptors by first record: those that are open already, and files that have come since."""
    found = dict(known)
    for first in first_numbers(os.listdir(log)) if log.is_dir() else ():
        if first not in found and first > max(known, default=-1):
            found[first] = _open(log / file_name(first), opened)
    return found


def _open(path: Path, opened: ExitStack) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    opened.callback(os.close, descriptor)
    return descriptor


def _open_checkpoints(directory: Path, opened: ExitStack) -> list[_OpenCheckpoint]:
    """The checkpoints that there are, newest first; those that cannot be read are left out."""
    place = directory / "checkpoints"
    steps = sorted((path for path in place.glob("[0-9]*") if path.name.isdigit()), reverse=True)
    found: list[_OpenCheckpoint] = []
    for path in steps:
        try:
            manifest = (path / "manifest.json").read_bytes()
            _, names, chunks = read_manifest(path)
            expected = {f"checkpoints/{path.name}/{name}": _checks(checks) for name, checks in names.items()}
            expected |= {f"replay/{chunk['file']}": _checks(chunk) for chunk in chunks}
            files = {name: (_open(directory / name, opened), checks) for name, checks in expected.items()}
        except (CheckpointDamaged, OSError):
            if not path.exists():
                raise _Changed(f"{path} was removed.") from None
            continue
        found.append(_OpenCheckpoint(int(path.name), manifest, files))
    return found


def _checks(checks: Chunk) -> FileChecks:
    return FileChecks(checks["bytes"], checks["sha256"])


def _copy_checkpoint(checkpoints: list[_OpenCheckpoint], files: BackupFiles, place: str) -> int | None:
    """Copy the newest checkpoint whose bytes are those that were written; returns its position."""
    for checkpoint in checkpoints:
        added: list[str] = []
        for name, (descriptor, checks) in checkpoint.files.items():
            added.append(f"{place}/{name}")
            if files.add(added[-1], _chunks(descriptor)) != checks:
                break
        else:
            files.add(f"{place}/checkpoints/{checkpoint.step:012d}/manifest.json", [checkpoint.manifest])
            return checkpoint.step
        for name in added:
            files.remove(name)
    return None


def _copy_identities(directory: Path, files: BackupFiles, place: str) -> int:
    """Copy the file of identities if it is sound; returns its position."""
    try:
        data = (directory / "stored.json").read_bytes()
        position = StoredSegments.decode(data).position
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        # The log has everything that the file would say, if it is complete; if it is not, its beginning is missing.
        return 0
    files.add(f"{place}/stored.json", [data])
    return position


def _copy_log(log: Path, opened: dict[int, int], end: int, covered: int, files: BackupFiles, place: str) -> None:
    """Copy the records below `end`. Only those below `covered`, which are not needed, may be damaged."""
    firsts = sorted(opened)
    if not firsts:
        return
    for first, stop in pairwise([*firsts, sys.maxsize]):
        if first >= end and first != firsts[0]:
            break
        data = b"".join(_chunks(opened[first]))
        number, cut = first, HEADER_BYTES
        for offset, frame in sound_frames(data, first, min(stop, end)):
            if (frame.number != number or offset != cut) and frame.number > covered:
                raise _Changed(f"{log / file_name(first)}, byte {cut}: record {number} is damaged or missing.")
            number, cut = frame.number + 1, frame.end
        if number < min(stop, end):
            if min(stop, end) > covered:
                raise _Changed(f"{log / file_name(first)}, byte {cut}: record {number} is damaged or missing.")
            cut = len(data)
        files.add(f"{place}/{file_name(first)}", [data[:cut]])
    files.add(f"{place}/committed", [encode_ends(Ends(end, end))])


def _chunks(descriptor: int) -> Iterator[bytes]:
    """The bytes of an open file as they are now; what is appended later is not among them."""
    offset, size = 0, os.fstat(descriptor).st_size
    while chunk := os.pread(descriptor, min(_CHUNK, size - offset), offset):
        offset += len(chunk)
        yield chunk
