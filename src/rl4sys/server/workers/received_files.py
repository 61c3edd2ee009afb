"""Files that a worker on another machine sends to its host, stored as if the worker had written them here."""

from __future__ import annotations

import os
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.checkpoints import Checkpoints
from rl4sys.server.learners.held_data import KEPT_CHECKPOINTS
from rl4sys.server.learners.learner_setup import is_learner
from rl4sys.server.workers.events import FilePart
from rl4sys.server.workers.sent_files import require_file_name


class ReceivedFiles:
    """The parts of files as they arrive. A checkpoint counts once all of its files are on the disk and verified."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._checkpoints = Checkpoints(directory / "checkpoints", KEPT_CHECKPOINTS)
        self._fresh: set[str] = set()
        """Chunks of replayed rows that arrived since the last checkpoint."""
        self._names: set[str] = set()
        """Files that arrived whole since then."""

    def take(self, part: FilePart) -> None:
        """Write a part."""
        if not is_learner(self._directory):
            raise FileNotFoundError(f"{self._directory} was removed while the learner was running")
        path = self._directory / require_file_name(part.name)
        kind = part.name.partition("/")[0]
        aside = _aside(path) if kind != "tensorboard" else path
        make_directory(aside.parent)
        with aside.open("r+b" if part.offset and aside.exists() else "wb") as file:
            file.seek(part.offset)
            file.write(part.blob)
            if not part.is_last or kind == "tensorboard":
                return
            file.flush()
            os.fsync(file.fileno())
        self._names.add(part.name)
        if kind == "replay":
            aside.replace(path)
            sync_directory(path.parent)
            self._fresh.add(path.name)

    def store(self, step: int) -> tuple[int, list[str]]:
        """Make the checkpoint whose files have arrived one of the learner's; returns the oldest, and its files.

        Raises `CheckpointDamaged` if something of it is missing or changed.
        """
        place = self._directory / "checkpoints" / f"{step:012d}"
        if any(name.startswith("checkpoints/") for name in self._names) or not place.is_dir():
            self._checkpoints.adopt(step, _aside(place), self._fresh)
        names = sorted(self._names)
        self.forget()
        return self._checkpoints.steps()[0], names

    def forget(self) -> None:
        """Begin with the next checkpoint: this one could not be stored."""
        self._names.clear()
        self._fresh.clear()


def _aside(path: Path) -> Path:
    """Where a file or a checkpoint is written before it has its name; what is left there is tidied up."""
    if path.parent.name.isdigit():
        return path.parent.with_name(f".{path.parent.name}.tmp") / path.name
    return path.with_name(f".{path.name}.tmp")
