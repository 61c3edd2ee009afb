"""Durability levels: what a committed record survives."""

from __future__ import annotations

from enum import StrEnum

from rl4sys.records.files import DiskFiles, Files
from rl4sys.records.memory_files import MemoryFiles


class Durability(StrEnum):
    """What a committed record survives, from the safest level down."""

    FSYNC = "fsync"
    """On the disk: survives a power cut."""

    OS = "os"
    """With the operating system: survives kill -9 of the process, not a power cut."""

    MEMORY = "memory"
    """In this process only: lost with it. Readers must be in the same process."""


def files_for(durability: Durability) -> Files:
    """The files of a log with this durability."""
    return MemoryFiles() if durability is Durability.MEMORY else DiskFiles()
