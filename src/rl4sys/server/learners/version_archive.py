"""The archive of a learner's published versions: what was sent is on the disk before it is sent.

A directory of numbered files. Each begins with a frame that describes the policy and a full copy of a version; patches
to later versions follow, one frame each, with the CRC of `rl4sys.records.frames`. A frame that a crash cut short is
ignored.
"""

from __future__ import annotations

import json
import logging
import struct
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rl4sys.failpoints import failpoint
from rl4sys.records import Durability, Files
from rl4sys.records.frames import decode_frame, encode_frame, find_mark
from rl4sys.weights import Encoding, Flat, Patch, PatchMismatch, Version, apply_patch, make_patch

_log = logging.getLogger(__name__)

_SUFFIX = ".versions"
_ASIDE = "new.tmp"
_FORMAT = 1
_KEPT_FILES = 2
_MAX_PATCHES = 64
_MAX_GROWTH = 4
"""The patches in a file take up to so many times the bytes of its full copy."""
_HEAD = struct.Struct("<BqQ32s")
"""Encoding, base (-1 for a full copy), number of weights, SHA-256 of the weights."""


@dataclass(frozen=True, slots=True)
class PolicyDescription:
    """What Join needs besides the weights, so that no worker has to be asked."""

    explore: str
    """The exploring policy, as `PolicySpec.to_json` writes it."""
    exploit: str
    """The exploiting policy; empty if the worker named none."""
    config: str
    """The config with all defaults, in canonical form."""
    noise_seed: int
    lineage: str


@dataclass(slots=True)
class ArchiveFile:
    """What could be read of one file of an archive."""

    description: PolicyDescription | None = None
    versions: list[Version] = field(default_factory=list)
    first_bytes: int = 0
    """Length of the description and the full copy."""
    length: int = 0
    """Length of the frames that could be read."""
    highest: int = -1
    """The greatest version number of any sound frame, also behind damaged ones."""
    fault: str = ""
    """What is wrong with it; empty if nothing is."""


class VersionArchive:
    """The newest versions of one learner on the disk. One thread writes; reading happens once, at the start."""

    def __init__(self, directory: Path, lineage: str, durability: Durability, files: Files) -> None:
        """Read what there is of this lineage; files of other lineages are ignored, and removed with the next ones."""
        self.directory, self._durability, self._files = directory, durability, files
        self.description: PolicyDescription | None = None
        self.versions: tuple[Version, ...] = ()
        """At first all that could be read, oldest first, perhaps with gaps; after a write only the newest."""
        self.highest = -1
        """The greatest number that was ever archived, as far as that is known; -1 for none."""
        self.other_lineage = ""
        """The lineage of newer files that are ignored; empty if there are none."""
        self._path: Path | None = None
        """The file that can be appended to."""
        self._first_bytes = self._length = self._patches = 0
        files.make_directory(directory)
        self._read(lineage)

    def describe(self, description: PolicyDescription) -> None:
        """What later versions belong to. If it has changed, the next one starts a file."""
        if description != self.description:
            self.description, self._path = description, None

    def write(self, version: Version) -> Patch:
        """Make a version durable, and return the patch from the last one to it (a full copy at the start of a file).

        After an `OSError` the version is not archived, and the next attempt starts another file: what a failed sync
        left on the disk is unknown.
        """
        failpoint("before version archive")
        path, newest = self._path, self.versions[-1] if self.versions else None
        self._path = None
        if path is None or newest is None or not self._has_room():
            path, patch = self._start_file(version)
        else:
            patch = make_patch(newest, version)
            frame = _encode(patch)
            file = self._files.open(path)
            try:
                if file.size() > self._length:
                    # What a crash left of a frame.
                    file.truncate(self._length)
                file.write(self._length, frame)
                if self._durability is Durability.FSYNC:
                    file.sync()
            finally:
                file.close()
            self._length += len(frame)
            self._patches += 1
        failpoint("after version archive")
        self._path = path
        self.versions = (version,)
        self.highest = max(self.highest, version.number)
        return patch

    def _has_room(self) -> bool:
        return self._patches < _MAX_PATCHES and self._length < (1 + _MAX_GROWTH) * self._first_bytes

    def _start_file(self, version: Version) -> tuple[Path, Patch]:
        """A file with a full copy, complete or absent; older ones than the one before it are removed."""
        if self.description is None:
            raise ValueError(f"Version {version.number} has no description. Call `describe` first.")
        patch = make_patch(None, version)
        about = json.dumps({"format": _FORMAT} | asdict(self.description)).encode()
        data = encode_frame(version.number, 0, about) + _encode(patch)
        numbers = self._numbers()
        aside, path = self.directory / _ASIDE, self._place(numbers[-1] + 1 if numbers else 0)
        file = self._files.create(aside)
        try:
            file.write(0, data)
            if self._durability is Durability.FSYNC:
                file.sync()
        except OSError:
            # An incomplete file would only take space, which may be what is missing.
            self._files.remove(aside)
            raise
        finally:
            file.close()
        self._files.rename(aside, path)
        self._files.sync_directory(self.directory)
        for number in numbers[: 1 - _KEPT_FILES]:
            self._files.remove(self._place(number))
        self._first_bytes = self._length = len(data)
        self._patches = 0
        return path, patch

    def _read(self, lineage: str) -> None:
        """Take over the newest readable file, and older versions from the one before it."""
        for number in reversed(self._numbers()):
            path = self._place(number)
            contents = self._contents(path)
            if contents.description is None:
                continue
            if contents.description.lineage != lineage:
                self.other_lineage = self.other_lineage or contents.description.lineage
                continue
            self.highest = max(self.highest, contents.highest)
            if not self.versions and contents.versions:
                self.description, self._path = contents.description, path
                self._first_bytes, self._length = contents.first_bytes, contents.length
                self._patches = len(contents.versions) - 1
            self.versions = (*contents.versions, *self.versions)
        if self.highest > (self.versions[-1].number if self.versions else -1):
            # Appended to, the damaged frames would be overwritten.
            self._path = None
            _log.error(
                "%s is damaged: version %d was published, and %s can be read. Clients keep theirs until the log is "
                "folded again.",
                *(self.directory, self.highest, self.versions[-1].number if self.versions else "none"),
            )

    def _contents(self, path: Path) -> ArchiveFile:
        file = self._files.open_to_read(path)
        try:
            contents = parse_archive(file.read(0, file.size()))
        finally:
            file.close()
        if contents.fault:
            _log.error("%s: %s.", path, contents.fault)
        return contents

    def _numbers(self) -> list[int]:
        stems = [name.removesuffix(_SUFFIX) for name in self._files.names(self.directory) if name.endswith(_SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdecimal())

    def _place(self, number: int) -> Path:
        return self.directory / f"{number:012d}{_SUFFIX}"


def _encode(patch: Patch) -> bytes:
    base = -1 if patch.base is None else patch.base
    return encode_frame(patch.target, 0, _HEAD.pack(patch.encoding, base, patch.size, patch.sha256) + patch.payload)


def _decode(number: int, payload: bytes) -> Patch:
    encoding, base, size, sha256 = _HEAD.unpack_from(payload)
    return Patch(base if base >= 0 else None, number, Encoding(encoding), payload[_HEAD.size :], sha256, size)


def parse_archive(data: bytes) -> ArchiveFile:
    """The contents of one file."""
    contents = ArchiveFile()
    frame = decode_frame(data, 0)
    if frame is None:
        contents.fault = "it is damaged and ignored: it does not begin with a description"
        return contents
    try:
        raw = json.loads(data[frame.begin : frame.end])
        if raw.pop("format") != _FORMAT:
            raise ValueError("it was written by a later version of rl4sys")
        contents.description = PolicyDescription(**raw)
    except (ValueError, KeyError, TypeError) as error:
        contents.fault = f"it is ignored: {error}"
        return contents
    flat: Flat | None = None
    end = frame.end
    while (frame := decode_frame(data, end)) is not None:
        patch = _decode(frame.number, data[frame.begin : frame.end])
        try:
            flat = apply_patch(flat if patch.base is not None else None, patch, patch.size)
        except PatchMismatch as error:
            contents.fault = f"it is damaged: {error}"
            break
        contents.versions.append(Version(frame.number, flat))
        end = frame.end
        contents.first_bytes = contents.first_bytes or end
    contents.length = end
    contents.highest = max([version.number for version in contents.versions] + _numbers_behind(data, end), default=-1)
    return contents


def _numbers_behind(data: bytes, offset: int) -> list[int]:
    """The version numbers of sound frames behind a damaged one; none if a crash cut the last frame short."""
    numbers: list[int] = []
    while (offset := find_mark(data, offset)) >= 0:
        frame = decode_frame(data, offset)
        if frame is not None:
            numbers.append(frame.number)
        offset = frame.end if frame is not None else offset + 1
    return numbers
