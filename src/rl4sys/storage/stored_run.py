"""One run in storage: its files by their hashes, and a list of them for each attempt at training it.

The list is written last, so what it names is complete. A process that takes over a run begins an attempt with a higher
number; the lists of lower ones no longer count, so a process that was thought dead can do no harm.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rl4sys.atomic_files import publish_directory, replace_link, write_durably
from rl4sys.checkpoints.files import checks_of
from rl4sys.file_lock import FileLock
from rl4sys.run_files import SCRATCH
from rl4sys.storage.object_storage import ObjectStorage

ATTEMPTS, FILES = "attempts", "files"
_FORMAT = 1
_DEPTH = 4
"""Levels below a URL in which runs are looked for."""
_TRIES = 5
"""How often a run is read again because its files were replaced meanwhile."""


class NotStored(FileNotFoundError):
    """There is no run in storage where one was expected, or a file of it is missing or damaged."""


class Superseded(RuntimeError):
    """A newer attempt trains this run somewhere else, so this one must end."""


@dataclass(frozen=True, slots=True)
class StoredContents:
    """What an attempt has stored: the files of a run directory at one moment."""

    run: str
    """The name of the run directory."""
    attempt: int
    owner: str
    """Which process writes it: host, number and a random part."""
    time: float
    """When it was written, in seconds since 1970."""
    files: Mapping[str, Mapping[str, Any]]
    """Length and SHA-256 of each file, by its path within the run."""
    links: Mapping[str, str]
    """Symbolic links by their paths: object storage has none."""
    format: int = _FORMAT

    @property
    def hashes(self) -> set[str]:
        """The hashes of all files."""
        return {checks["sha256"] for checks in self.files.values()}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(checks["bytes"]) for checks in self.files.values())


class StoredRun:
    """A run in storage, for reading, or for one attempt at training it."""

    def __init__(self, storage: ObjectStorage) -> None:
        self.storage = storage
        self._mine: StoredContents | None = None
        self._seen: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {}

    def contents(self) -> StoredContents | None:
        """What the newest attempt has stored; None if no attempt has begun."""
        for name in reversed(self._attempts()):
            try:
                return _decode(self.storage.read(f"{ATTEMPTS}/{name}"), self.storage.url)
            except FileNotFoundError:
                # A newer attempt has removed it meanwhile.
                continue
        return None

    def begin(self, run: str | None = None) -> int:
        """Begin an attempt, which supersedes all earlier ones, and return its number.

        It starts with what the attempt before it has stored, or with an empty run of the given name.
        """
        before = self.contents()
        number = 1 if before is None else before.attempt + 1
        owner = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        if before is None:
            if run is None:
                raise NotStored(f"There is no run in {self.storage.url}.")
            before = StoredContents(run, 0, owner, 0.0, {}, {})
        self._write(replace(before, attempt=number, owner=owner, time=time.time()))
        return number

    def store(self, run: Path) -> None:
        """Store what is new in a run directory, the list of its files last; or raise `Superseded`."""
        before = self._require_current()
        links = {path.relative_to(run).as_posix(): str(path.readlink()) for path in _links(run)}
        known, files = before.hashes, {}
        for path in _files(run):
            name = path.relative_to(run).as_posix()
            files[name] = self._unchanged(path, name, known) or self._store_file(path, name, known)
            known.add(files[name]["sha256"])
        self._require_current()
        now = replace(before, run=run.name, files=files, links=links, time=time.time())
        self._write(now)
        for name in self._attempts():
            if _number(name) < now.attempt:
                self.storage.delete(f"{ATTEMPTS}/{name}")
        for unneeded in before.hashes - now.hashes:
            self.storage.delete(f"{FILES}/{unneeded}")

    def fetch(self, parent: Path) -> Path:
        """Copy the newest contents into a directory of the run's name below `parent`; files that are there are kept."""
        for _ in range(_TRIES):
            contents = self.contents()
            if contents is None or not contents.files:
                raise NotStored(f"There is no run in {self.storage.url}, or nothing of it has been stored yet.")
            try:
                return self._fetch(contents, parent / contents.run)
            except FileNotFoundError as error:
                # A checkpoint was replaced while it was read.
                missing = error
        raise NotStored(f"{self.storage.url} lacks a file that it should have: {missing}")

    def _fetch(self, contents: StoredContents, target: Path) -> Path:
        aside = target.with_name(f".{target.name}.tmp")
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        held = FileLock.try_acquire(target) if target.is_dir() else None
        if held is None and target.is_dir():
            raise BlockingIOError(f"{target} is in use by another process; wait for it, or stop it first.")
        try:
            for name, checks in contents.files.items():
                place = aside / name
                place.parent.mkdir(parents=True, exist_ok=True)
                data = _same(target / name, checks)
                write_durably(place, self._read(checks) if data is None else data)
            for name, link in contents.links.items():
                replace_link(aside / name, link)
            publish_directory(aside, target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            if held is not None:
                held.release()
        return target

    def _read(self, checks: Mapping[str, Any]) -> bytes:
        data = self.storage.read(f"{FILES}/{checks['sha256']}")
        if checks_of(data) != dict(checks):
            raise NotStored(f"{self.storage.url}/{FILES}/{checks['sha256']} is damaged: its bytes have another hash.")
        return data

    def _require_current(self) -> StoredContents:
        newest = self.contents()
        mine = self._mine
        if mine is None:
            raise RuntimeError("An attempt must begin before anything is stored.")
        if newest is None or newest.attempt != mine.attempt or newest.owner != mine.owner:
            by = "removed" if newest is None else f"continued by attempt {newest.attempt} ({newest.owner})"
            raise Superseded(f"Attempt {mine.attempt} ends here: the run in {self.storage.url} was {by}.")
        return mine

    def _write(self, contents: StoredContents) -> None:
        self.storage.write(f"{ATTEMPTS}/{contents.attempt:06d}.json", json.dumps(asdict(contents)).encode())
        self._mine = contents

    def _attempts(self) -> list[str]:
        return [name for name in self.storage.names(ATTEMPTS) if name.endswith(".json")]

    def _unchanged(self, path: Path, name: str, known: set[str]) -> dict[str, Any] | None:
        """Length and SHA-256 of a file that was stored already and has not changed since."""
        seen = self._seen.get(name)
        is_same = seen is not None and seen[0] == _stamp(path) and seen[1]["sha256"] in known
        return seen[1] if seen is not None and is_same else None

    def _store_file(self, path: Path, name: str, known: set[str]) -> dict[str, Any]:
        """Store a file unless its bytes are there; returns its length and SHA-256."""
        stamp, data = _stamp(path), path.read_bytes()
        checks = checks_of(data)
        if checks["sha256"] not in known:
            self.storage.write(f"{FILES}/{checks['sha256']}", data)
        self._seen[name] = (stamp, checks)
        return checks


def find_stored_runs(storage: ObjectStorage) -> Iterator[StoredRun]:
    """The runs at a URL or up to a few levels below it."""
    for place in storage.walk(_DEPTH):
        if place.path.rpartition("/")[2] not in (ATTEMPTS, FILES) and place.names(ATTEMPTS):
            yield StoredRun(place)


def _decode(data: bytes, url: str) -> StoredContents:
    try:
        contents = StoredContents(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise NotStored(f"The list of files in {url} cannot be read: {error}") from error
    if contents.format != _FORMAT:
        raise NotStored(f"The run in {url} has format {contents.format}; this version of RL4Sys reads {_FORMAT}.")
    return contents


def _number(name: str) -> int:
    return int(name.removesuffix(".json"))


def _files(run: Path) -> Iterator[Path]:
    """All files that a run consists of, without those that are being written."""
    for path in sorted(run.rglob("*")):
        parts = path.relative_to(run).parts
        hidden = any(part.startswith(".") for part in parts)
        if not hidden and parts[0] != SCRATCH and path.is_file() and not _is_linked(path, run):
            yield path


def _links(run: Path) -> Iterator[Path]:
    for path in sorted(run.rglob("*")):
        if path.is_symlink() and not path.name.startswith("."):
            yield path


def _is_linked(path: Path, run: Path) -> bool:
    """Whether a path is a link, or lies in a directory that is one."""
    while path != run:
        if path.is_symlink():
            return True
        path = path.parent
    return False


def _same(path: Path, checks: Mapping[str, Any]) -> bytes | None:
    """The bytes of a local file, if they are those that were stored."""
    try:
        if path.stat().st_size != checks["bytes"]:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    return data if checks_of(data) == dict(checks) else None


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
