"""How the C library keeps memory that was freed: updates allocate the same large arrays again and again."""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""
_KEPT_BYTES = 512 << 20
_HEAP_BYTES = 64 << 20
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Let this process keep up to 512 MB that it freed, for its next allocations; returns whether it will.

    By default glibc returns large arrays to the system, which then fills the same pages with zeros for the next ones:
    an eighth of the time of updates from images. Other C libraries, and a user who chose otherwise, are left alone.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _VARIABLES):
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # Larger arrays are mapped one by one, and go back to the system.
    return bool(set_option(_MMAP_THRESHOLD, _HEAP_BYTES)) and bool(set_option(_TRIM_THRESHOLD, _KEPT_BYTES))
