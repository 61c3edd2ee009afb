"""How much memory and disk there is for a replay, as Linux tells it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

_UNLIMITED = 1 << 60
"""Limits of control groups beyond this are none."""


def memory_at_hand(root: Path = Path("/")) -> int | None:
    """Bytes that this process can still take before the machine, or its control group, has none left.

    What is only cached counts as free. None where the system does not say.
    """
    found = [*_available(root / "proc/meminfo"), *_left_in_groups(root)]
    return max(0, min(found)) if found else None


def disk_at_hand(directory: Path) -> int:
    """Free bytes on the disk that holds a directory, or would hold it."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _available(meminfo: Path) -> Iterator[int]:
    for name, value in _pairs(meminfo):
        if name == "MemAvailable:":
            yield value * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """What every control group around this process, up to the outermost, still allows."""
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            for group in _outwards(mount, path):
                yield from _left(group / "memory.max", group / "memory.current", group, "inactive_file")
        elif "memory" in controllers.split(","):
            for group in _outwards(mount / "memory", path):
                limit, used = group / "memory.limit_in_bytes", group / "memory.usage_in_bytes"
                yield from _left(limit, used, group, "total_inactive_file")


def _outwards(mount: Path, path: str) -> Iterator[Path]:
    """The group and those around it. Within a container the path may name what is outside and so not there."""
    group = mount / path.strip("/")
    yield group
    while group != mount:
        group = group.parent
        yield group


def _left(limit: Path, used: Path, group: Path, cached: str) -> Iterator[int]:
    most, now = _number(limit), _number(used)
    if most is None or now is None or most >= _UNLIMITED:
        return
    yield most - now + sum(value for name, value in _pairs(group / "memory.stat") if name == cached)


def _number(path: Path) -> int | None:
    text = "".join(_lines(path))
    return int(text) if text.isdigit() else None


def _pairs(path: Path) -> Iterator[tuple[str, int]]:
    for line in _lines(path):
        name, value, *_ = line.split()
        yield name, int(value)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        # Not Linux, or not this version of control groups: others are asked.
        return []
