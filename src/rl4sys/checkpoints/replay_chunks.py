"""The rows of a replay buffer on disk: appended chunk by chunk, so that a checkpoint costs what is new."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rl4sys.atomic_files import make_directory, replace_file
from rl4sys.checkpoints.files import CheckpointDamaged, Chunk, checks_of
from rl4sys.experience import Array


@runtime_checkable
class ReplayRows(Protocol):
    """A replay buffer, as far as saving it goes. Rows never change once they were added."""

    @property
    def first(self) -> int:
        """The id of the oldest row."""

    @property
    def total(self) -> int:
        """One past the id of the newest row."""

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the rows [first, last)."""

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Take rows back."""


class ReplayChunks:
    """Chunk files of one run; each holds the rows of a range of ids."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._written: list[Chunk] = []

    def append(self, buffer: ReplayRows) -> tuple[Chunk, ...]:
        """Write the rows that are not on disk yet; returns the list of chunks that the buffer now consists of."""
        held = [chunk for chunk in self._written if chunk["last"] > buffer.first]
        start = max(held[-1]["last"] if held else 0, buffer.first)
        if buffer.total > start:
            make_directory(self._directory)
            rows = {name: np.asarray(array, order="C") for name, array in buffer.rows(start, buffer.total).items()}
            data = save_tensors(rows)
            name = f"{start:012d}-{buffer.total:012d}.safetensors"
            replace_file(self._directory / name, data)
            held.append({"file": name, "first": start, "last": buffer.total, **checks_of(data)})
        self._written = held
        return tuple(held)

    def verify(self, chunks: Iterable[Chunk], checkpoint: str) -> None:
        """Raise `CheckpointDamaged` unless every chunk is what was written."""
        for chunk in chunks:
            place = f"{checkpoint}: replay chunk {chunk['file']}"
            try:
                data = (self._directory / chunk["file"]).read_bytes()
            except OSError as error:
                raise CheckpointDamaged(f"{place} cannot be read ({error.strerror})") from error
            if checks_of(data) != {"bytes": chunk["bytes"], "sha256": chunk["sha256"]}:
                raise CheckpointDamaged(f"{place} is not what was written (length or SHA-256 differs)")

    def require_present(self, chunks: Iterable[Chunk], checkpoint: str) -> None:
        """Raise `CheckpointDamaged` unless every chunk is there with its length; the bytes are not read."""
        for chunk in chunks:
            path = self._directory / chunk["file"]
            if not path.is_file() or path.stat().st_size != chunk["bytes"]:
                raise CheckpointDamaged(f"{checkpoint}: replay chunk {chunk['file']} is missing or incomplete")

    def read(self, chunks: Iterable[Chunk]) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """First id and columns of each chunk; later appends follow them."""
        self._written = list(chunks)
        for chunk in self._written:
            yield chunk["first"], load_tensors((self._directory / chunk["file"]).read_bytes())

    def prune(self, needed: Iterable[Iterable[Chunk]]) -> None:
        """Remove the chunks that no kept checkpoint refers to."""
        if not self._directory.is_dir():
            return
        names = {chunk["file"] for chunks in needed for chunk in chunks}
        for path in self._directory.glob("*.safetensors"):
            if path.name not in names:
                # What cannot be removed now is tried again at the next checkpoint.
                with contextlib.suppress(OSError):
                    path.unlink()

    def tidy(self) -> None:
        """Clear away what a kill left half-written."""
        for path in self._directory.glob(".*.tmp"):
            path.unlink()
