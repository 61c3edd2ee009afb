"""Files of a learner on their way between its host and a worker on another machine: in parts, manifests last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rl4sys.checkpoints.files import read_manifest
from rl4sys.server.workers.events import FilePart

_PART_BYTES = 8 << 20
_NAMES = re.compile(
    r"checkpoints/\d{12}/(state\.json|arrays\.safetensors|manifest\.json)"
    r"|replay/\d{12,}-\d{12,}\.safetensors"
    r"|tensorboard/[\w.-]+"
)


def require_file_name(name: str) -> str:
    """A name that a machine may send; raises `ValueError` for any other."""
    if _NAMES.fullmatch(name) is None or ".." in name:
        raise ValueError(f"'{name[:200]}' is no file of a learner")
    return name


def write_part(directory: Path, name: str, offset: int, data: bytes) -> Path:
    """Write a part of a file where it belongs; returns its path."""
    path = directory / require_file_name(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("r+b" if offset else "wb") as file:
        file.seek(offset)
        file.write(data)
    return path


def parts_of(directory: Path, name: str, begin: int = 0) -> Iterator[FilePart]:
    """The parts of a file from a byte on; at least one."""
    with (directory / name).open("rb") as file:
        file.seek(begin)
        data = file.read(_PART_BYTES)
        while True:
            following = file.read(_PART_BYTES)
            yield FilePart(name, begin, not following, data)
            if not following:
                return
            begin, data = begin + len(data), following


def checkpoint_files(directory: Path, step: int) -> tuple[list[str], list[str]]:
    """The names of the files of a checkpoint, the manifest last; and of the replayed rows that it needs."""
    place = f"checkpoints/{step:012d}"
    _, files, chunks = read_manifest(directory / place)
    return [f"{place}/{name}" for name in [*files, "manifest.json"]], [f"replay/{chunk['file']}" for chunk in chunks]


class SentFiles:
    """What a worker has to send of its directory: each checkpoint once, with the replayed rows that are new."""

    def __init__(self, directory: Path, send: Callable[[FilePart], None]) -> None:
        self._directory, self._send = directory, send
        self._stored: set[str] = set()
        """Files that the host has."""
        self._curves: dict[str, int] = {}
        """Bytes that were sent of each file of curves."""

    def note_stored(self, names: Iterable[str]) -> None:
        """The host has these files. What it could not store is sent again with the next checkpoint."""
        self._stored.update(names)

    def send_checkpoint(self, step: int) -> None:
        """Send the files of a checkpoint that the host does not have, and the curves up to now."""
        files, rows = checkpoint_files(self._directory, step)
        if files[-1] in self._stored:
            return
        for name in [*rows, *files]:
            if name not in self._stored:
                for part in parts_of(self._directory, name):
                    self._send(part)
        # Rows that no checkpoint needs any more are forgotten.
        self._stored &= {*rows, *files}
        self._send_curves()

    def _send_curves(self) -> None:
        for path in sorted((self._directory / "tensorboard").glob("*")):
            name = f"tensorboard/{path.name}"
            for part in parts_of(self._directory, name, self._curves.get(name, 0)):
                self._send(part)
                self._curves[name] = part.offset + len(part.blob)
