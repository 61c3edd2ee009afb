"""Where the columns of a replay lie: in memory, or in files that the system pages in and out."""

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
    """Gives room for columns."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Zeros that can be written to."""


@dataclass(frozen=True, slots=True)
class InMemory:
    """Ordinary memory; pages that were never written to take none."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Zeros."""
        return np.zeros(shape, dtype)


@dataclass(frozen=True, slots=True)
class Mapped:
    """Files without a name: they are gone with the process, however it ends, and never read by another one.

    What a run is resumed from is its checkpoint; this is only where the rows lie meanwhile.
    """

    directory: Path
    """On the disk that is to hold the columns; made if it is not there."""

    def allocate(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
        """Zeros in a file of their own, whose space is reserved: a disk that fills up later takes nothing away."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size == 0:
            return np.zeros(shape, dtype)
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self.directory) as file:
            # Writing to a mapped hole of a full disk would end the process without a word.
            os.posix_fallocate(file.fileno(), 0, size)
            memory = mmap.mmap(file.fileno(), size)
        # Draws are scattered: reading ahead would fetch what nobody asked for.
        memory.madvise(mmap.MADV_RANDOM)
        return np.frombuffer(memory, dtype).reshape(shape)
