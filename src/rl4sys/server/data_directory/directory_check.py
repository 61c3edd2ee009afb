"""The check of a whole data directory: every learner, and what they share. It changes nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.file_lock import FileLock
from rl4sys.server.data_directory.findings import DataFinding
from rl4sys.server.data_directory.learner_check import LearnerCheck, check_learner
from rl4sys.server.learners.claims import is_unclaimed
from rl4sys.server.learners.interrupted_restore import RESTORING, is_interrupted
from rl4sys.server.learners.learner_setup import is_learner


class NoDataDirectory(FileNotFoundError):
    """A directory is not the data directory of a training server."""


class DataInUse(RuntimeError):
    """A server, or another command, is using the data directory."""


@dataclass(slots=True)
class DirectoryCheck:
    """What was found in a data directory."""

    data: Path
    is_live: bool
    """Whether a server was using it meanwhile."""
    findings: list[DataFinding] = field(default_factory=list)
    """Those about the directory itself, then those about learners by name."""
    learners: list[LearnerCheck] = field(default_factory=list)

    @property
    def problems(self) -> bool:
        """Whether anything matters."""
        return any(finding.matters for finding in self.findings)


def check_directory(data: Path, learner: str | None = None, *, is_alone: bool = False) -> DirectoryCheck:
    """Check all learners, or one; `is_alone` within `alone_with`."""
    require_data(data)
    check = DirectoryCheck(data, not is_alone and is_in_use(data))
    _check_permissions(check)
    _check_audit_log(check)
    if is_interrupted(data):
        check.findings.append(
            DataFinding(
                "",
                "A restore was interrupted.",
                str(data / RESTORING),
                matters=True,
                advice="Run rl4sys data restore again: it begins from the start.",
            )
        )
    for directory in learner_directories(data, learner):
        if not is_learner(directory):
            _check_remains(check, directory)
            continue
        try:
            found = check_learner(directory, is_live=check.is_live)
        except OSError as error:
            if check.is_live and not is_learner(directory):
                # It was deleted meanwhile.
                continue
            found = LearnerCheck(directory, is_held=True)
            found.add(f"It cannot be read: {error}.", directory, "Check its permissions and the disk.")
        check.learners.append(found)
        check.findings += found.findings
    return check


def require_data(data: Path) -> None:
    """Raise `NoDataDirectory` unless there are learners in a directory."""
    if not (data / "learners").is_dir():
        raise NoDataDirectory(
            f"{data} is not the data directory of a training server: it has no directory 'learners'. Give the "
            f"directory of `rl4sys serve --data`."
        )


def learner_directories(data: Path, learner: str | None = None) -> list[Path]:
    """The directories of all learners that clients know of, or of one."""
    found = [path for path in sorted((data / "learners").iterdir()) if path.is_dir() and not is_unclaimed(path)]
    if learner is None:
        return found
    if not any(path.name == learner for path in found):
        names = ", ".join(path.name for path in found) or "none"
        raise NoDataDirectory(f"{data} has no learner '{learner}'; it has {names}.")
    return [data / "learners" / learner]


def is_in_use(data: Path) -> bool:
    """Whether a server, or a command that changes the directory, is using it."""
    try:
        lock = FileLock.try_acquire(data / "lock", shared=True)
    except FileNotFoundError:
        return False
    if lock is None:
        return True
    lock.release()
    return False


@contextmanager
def alone_with(data: Path) -> Iterator[None]:
    """Keep servers and their workers out of a data directory, or raise `DataInUse`."""
    lock = FileLock.try_acquire(data / "lock", create=0o600)
    if lock is None:
        raise DataInUse(f"{data} is used by a server. End that one first; only check and backup work beside it.")
    with lock:
        for path in sorted((data / "learners").glob("*/worker.lock")):
            worker = FileLock.try_acquire(path)
            if worker is None:
                raise DataInUse(
                    f"A worker of an earlier server still holds {path}. Wait until it has ended, or end it."
                )
            worker.release()
        yield


def _check_permissions(check: DirectoryCheck) -> None:
    found = check.data.stat()
    if found.st_mode & 0o077:
        check.findings.append(
            DataFinding(
                "",
                f"Other users may use the data (mode {found.st_mode & 0o777:o}): experience and policies may be "
                f"confidential.",
                str(check.data),
                matters=True,
                advice=f"chmod 700 {check.data}",
            )
        )
    paths = (Path(place) / name for place, names, files in os.walk(check.data) for name in (*names, *files))
    # What a server has removed meanwhile cannot be read either.
    unreadable = [path for path in paths if not os.access(path, os.R_OK) and path.exists()]
    if unreadable:
        check.findings.append(
            DataFinding(
                "",
                f"{len(unreadable)} files cannot be read by this user, such as this one.",
                str(unreadable[0]),
                matters=True,
                advice="Run this as the user of the server, or give the files to that user.",
            )
        )


def _check_audit_log(check: DirectoryCheck) -> None:
    path = check.data / "audit.jsonl"
    if not path.exists():
        return
    lines = path.read_bytes().splitlines()
    broken = [number for number, line in enumerate(lines, 1) if line and not _is_json(line)]
    # The last line may be being written.
    if broken and not (check.is_live and broken == [len(lines)]):
        check.findings.append(
            DataFinding(
                "",
                f"{len(broken)} lines of the audit log cannot be read, the first of them line {broken[0]}.",
                str(path),
                matters=False,
                advice="Nothing: a crash may have cut a line short, and the others can be read.",
            )
        )


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _check_remains(check: DirectoryCheck, directory: Path) -> None:
    if (directory / "log").is_dir() or (directory / "checkpoints").is_dir():
        check.findings.append(
            DataFinding(
                directory.name,
                "There is a log or a checkpoint, and the setup is missing.",
                str(directory / "setup.json"),
                matters=True,
                advice="Restore the file from a backup, or move the directory away.",
            )
        )
