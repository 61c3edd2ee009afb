"""Where the columns of a replay buffer are kept: in memory or in memory-mapped files."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rl4sys.experience import Array


class Storage(Protocol):
    """Allocates columns."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """A writable array of zeros."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """Ordinary memory; pages that were never written take no memory."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An array of zeros."""
        return np.zeros(shape, dtype)


@dataclass(frozen=True, slots=True)
class Mapped:
    """Anonymous files: the system removes them when the process ends, in whatever way it ends.

    Runs resume from their checkpoints, never from these files.
    """

    directory: Path
    """A directory on the disk for the columns; created if it does not exist."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """An array of zeros in a new file, whose space is reserved: a disk that fills up later does no harm."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.directory) as file:
            # Without reserved space, writing to the mapping on a full disk kills the process with SIGBUS.
            os.posix_fallocate(file.fileno(), 0, size)
            memory = mmap.mmap(file.fileno(), size)
        # Draws are scattered: reading ahead would fetch pages that are not needed.
        memory.madvise(mmap.MADV_RANDOM)
        return np.frombuffer(memory, dtype).reshape(shape)
