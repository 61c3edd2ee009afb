"""The manifest of a backup: every file with its length and SHA-256, written last, so that it means a whole backup."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from rl4sys.atomic_files import write_durably

_NAME = "manifest.json"
_FORMAT = 1
_CHUNK = 1 << 20


class BackupDamaged(ValueError):
    """A backup is incomplete, or its bytes are not those that were written."""


class FileChecks(NamedTuple):
    """Length and SHA-256 of a file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackedUpLearner:
    """What a backup has of one learner: the state that a server could have had at one moment."""

    records: int
    """Its log ends before this record."""
    checkpoint: int | None
    """The position of its checkpoint, if it has one."""
    lineage: str


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """The contents of a backup. Paths are relative to the data directory."""

    software: str
    began: float
    """Seconds since 1970. Everything that was acknowledged before is in the backup."""
    learners: Mapping[str, BackedUpLearner]
    left_out: Mapping[str, str]
    """Learners that could not be backed up, and why."""
    files: Mapping[str, FileChecks] = field(repr=False)

    @property
    def total_bytes(self) -> int:
        """Bytes of all files."""
        return sum(checks.bytes for checks in self.files.values())

    def write(self, backup: Path) -> None:
        """Write the file."""
        body = {
            "format": _FORMAT,
            "software": self.software,
            "began": self.began,
            "learners": {name: asdict(learner) for name, learner in self.learners.items()},
            "left_out": dict(self.left_out),
            "files": {name: checks._asdict() for name, checks in self.files.items()},
        }
        write_durably(backup / _NAME, json.dumps({"sha256": _seal(body), "manifest": body}, indent=1).encode())

    @classmethod
    def read(cls, backup: Path) -> BackupManifest:
        """Read the file, or raise `BackupDamaged`."""
        path = backup / _NAME
        try:
            sealed = json.loads(path.read_bytes())
            body = sealed["manifest"]
            if sealed["sha256"] != _seal(body):
                raise ValueError("its SHA-256 differs")
            if body["format"] != _FORMAT:
                raise ValueError(f"it has format {body['format']}, and this version reads {_FORMAT}")
            files = {_required_inside(name): FileChecks(**checks) for name, checks in body["files"].items()}
            learners = {name: BackedUpLearner(**learner) for name, learner in body["learners"].items()}
            return cls(body["software"], body["began"], learners, body["left_out"], files)
        except FileNotFoundError as error:
            raise BackupDamaged(
                f"{backup} is not a complete backup: it has no {_NAME}, which is written last. Use another backup."
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise BackupDamaged(f"{path} is not what was written: {error}. Use another backup.") from error


def read_checked(path: Path, expected: FileChecks) -> Iterator[bytes]:
    """The bytes of a file of a backup, or `BackupDamaged` at their end at the latest."""
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
                yield chunk
    except OSError as error:
        raise BackupDamaged(f"{path} cannot be read: {error.strerror}. Use another backup.") from error
    if FileChecks(size, digest.hexdigest()) != expected:
        raise BackupDamaged(f"{path} is not what was written: its length or SHA-256 differs. Use another backup.")


def _required_inside(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.parts[:1] not in (("learners",), ("audit.jsonl",)):
        raise ValueError(f"it names '{name}', which is no file of a backup")
    return name


def _seal(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
