"""What an acknowledgement is worth: which accidents a committed record survives."""

from __future__ import annotations

from enum import StrEnum

from rl4sys.records.files import DiskFiles, Files
from rl4sys.records.memory_files import MemoryFiles


class Durability(StrEnum):
    """From the safest to the least."""

    FSYNC = "fsync"
    """On the disk: survives a power cut."""

    OS = "os"
    """With the operating system: survives kill -9 of the process, not a power cut."""

    MEMORY = "memory"
    """In this process only: gone with it. Readers must live in the same process."""


def files_for(durability: Durability) -> Files:
    """Where a log of this durability keeps its files."""
    return MemoryFiles() if durability is Durability.MEMORY else DiskFiles()
