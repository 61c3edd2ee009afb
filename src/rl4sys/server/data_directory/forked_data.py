"""The data of a fork: copied from a learner that keeps running, as a backup copies it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.records import RecordLog, RecordReader
from rl4sys.server.data_directory.backup_files import BackupFiles
from rl4sys.server.data_directory.learner_copy import LearnerDamaged, LearnerGone, copy_learner
from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand, decode_record

_STATE = ("log", "checkpoints", "replay", "stored.json")
"""What a fork takes over; its lineage, orders and published versions are its own."""


class ForkImpossible(Exception):
    """The data of a learner do not suffice for a fork; the message says what to do instead."""


def copy_present_state(source: Inbox, place: Path, changes: Mapping[str, Any]) -> None:
    """Copy the log and the newest sound checkpoint; changed settings are one more record of the copied log."""
    files = BackupFiles(place, lambda size: None)
    try:
        copy_learner(source.directory, files)
    except (LearnerDamaged, LearnerGone) as error:
        raise ForkImpossible(str(error)) from error
    copied = place / "learners" / source.directory.name
    for name in _STATE:
        if (copied / name).exists():
            (copied / name).rename(place / name)
    shutil.rmtree(place / "learners")
    files.sync()
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
