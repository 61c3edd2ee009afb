"""The cores that this process may run on."""

from __future__ import annotations

import os


def usable_cores() -> tuple[int, ...]:
    """The numbers of the cores that this process may run on, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    # Only Linux has an affinity.
    return tuple(range(os.cpu_count() or 1))
