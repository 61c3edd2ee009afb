"""The memory and disk space available to this process, as Linux reports them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED = 1 << 60
"""A control group with a limit beyond this has no limit."""


@dataclass(frozen=True, slots=True)
class AvailableSpace:
    """Available bytes; None where the system does not report them."""

    memory: int | None
    disk: int | None

    @classmethod
    def at(cls, directory: Path) -> AvailableSpace:
        """The memory of this machine and the disk of a directory."""
        return cls(available_memory(), available_disk(directory))

    def shared_by(self, processes: int) -> AvailableSpace:
        """What each of several processes may take."""
        shares = (None if count is None else count // processes for count in (self.memory, self.disk))
        return AvailableSpace(*shares)


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that this process can still allocate before the machine or its control group runs out of memory.

    Cached files count as free. None where the system does not report it.
    """
    found = [*_available(root / "proc/meminfo"), *_left_in_groups(root)]
    return max(0, min(found)) if found else None


def available_disk(directory: Path) -> int:
    """Free bytes on the disk of a directory, which need not exist yet."""
    place = directory.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _available(meminfo: Path) -> Iterator[int]:
    for name, value in _pairs(meminfo):
        if name == "MemAvailable:":
            yield value * 1024


def _left_in_groups(root: Path) -> Iterator[int]:
    """The bytes left in each control group of this process, up to the outermost."""
    mount = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            for group in _with_parents(mount, path):
                yield from _left(group / "memory.max", group / "memory.current", group, "inactive_file")
        elif "memory" in controllers.split(","):
            for group in _with_parents(mount / "memory", path):
                limit, used = group / "memory.limit_in_bytes", group / "memory.usage_in_bytes"
                yield from _left(limit, used, group, "total_inactive_file")


def _with_parents(mount: Path, path: str) -> Iterator[Path]:
    """The group and its parents. In a container the path may name a group outside of it, which is not visible."""
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
        # Not Linux, or the other version of control groups.
        return []
