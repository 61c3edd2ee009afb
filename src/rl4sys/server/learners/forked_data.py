"""The data of a fork: copied from a learner that keeps running, consistently.

What must not be ahead of the log (the checkpoint, then the identities, then the committed end) is read before the files
of the log, and nothing is removed from that meanwhile. So the copy is what the learner would be after a crash.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.checkpoints import Checkpoints
from rl4sys.checkpoints.files import CheckpointDamaged, read_manifest
from rl4sys.records import RecordLog, RecordReader
from rl4sys.records.committed_end import NAME as COMMITTED_END
from rl4sys.records.frames import file_name, first_numbers
from rl4sys.server.learners.held_data import newest_sound_checkpoint
from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand, decode_record
from rl4sys.server.learners.stored_segments import StoredSegments

_ATTEMPTS = 5


class ForkImpossible(Exception):
    """The data of a learner do not suffice for a fork; the message says what to do instead."""


def copy_present_state(source: Inbox, place: Path, changes: Mapping[str, Any]) -> None:
    """Copy the log and the newest sound checkpoint; changed settings are one more record of the copied log."""
    with source.keeping_records():
        checkpoint = _copy_checkpoint(source.directory, place)
        if source.first_record > (checkpoint or 0):
            raise ForkImpossible(
                f"No sound checkpoint of '{source.directory.name}' could be copied, and its log begins with record "
                f"{source.first_record}. Try again."
            )
        StoredSegments.write(place, source.identities())
        make_directory(place / "log")
        _copy(source.directory / "log" / COMMITTED_END, place / "log" / COMMITTED_END)
        for first in first_numbers(os.listdir(source.directory / "log")):
            _copy(source.directory / "log" / file_name(first), place / "log" / file_name(first))
        sync_directory(place / "log")
    log = RecordLog(place / "log")
    try:
        if changes:
            log.append([LearnerCommand(CommandKind.SET, changes).encode()])
        log.sync()
    finally:
        log.close()


def copy_whole_log(source: Inbox, place: Path, changes: Mapping[str, Any]) -> None:
    """Copy the log alone. Settings that are changed from the beginning are not changed again by its commands."""
    with source.keeping_records():
        if source.first_record:
            raise ForkImpossible(
                f"The log of '{source.directory.name}' begins with record {source.first_record}: what was learned "
                f"before was removed, so that it cannot be learned again. Fork it without --refold."
            )
        reader, log = RecordReader(source.directory / "log"), RecordLog(place / "log")
        try:
            while batch := reader.read():
                log.append([_without(record.payload, changes) for record in batch])
                log.commit()
            log.sync()
        finally:
            reader.close()
            log.close()


def _without(payload: bytes, changes: Mapping[str, Any]) -> bytes:
    """A record; a command that changes settings leaves out those which the fork changes from the beginning."""
    command = decode_record(payload)
    if not isinstance(command, LearnerCommand) or command.kind is not CommandKind.SET:
        return payload
    kept = {name: value for name, value in command.values.items() if name not in changes}
    return command._replace(values=kept).encode()


def _copy_checkpoint(directory: Path, place: Path) -> int | None:
    """Copy the newest sound checkpoint and its replayed rows. The worker may remove it meanwhile for a newer one."""
    for _ in range(_ATTEMPTS):
        step = newest_sound_checkpoint(directory)
        if step is None:
            return None
        name = f"{step:012d}"
        copied = place / "checkpoints" / name
        make_directory(copied)
        try:
            for file in (directory / "checkpoints" / name).iterdir():
                _copy(file, copied / file.name)
            chunks = read_manifest(copied)[2]
            if chunks:
                make_directory(place / "replay")
            for chunk in chunks:
                _copy(directory / "replay" / chunk["file"], place / "replay" / chunk["file"])
            if Checkpoints(place / "checkpoints", keep=0).fault(step) is None:
                for synced in (copied, copied.parent, place / "replay" if chunks else place):
                    sync_directory(synced)
                return step
        except (FileNotFoundError, CheckpointDamaged):
            # Removed meanwhile: there is a newer one.
            shutil.rmtree(copied)
            continue
        shutil.rmtree(copied)
    return None


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    os.chmod(target, 0o600)
    with target.open("rb") as file:
        os.fsync(file.fileno())
