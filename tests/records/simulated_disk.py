"""A disk in memory that loses data like a real one: after a crash, unsynced data may be missing or torn."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.records import LogInUse

SECTOR = 64
"""Bytes that are written together; few, so that small records are torn as well."""


class Crashed(BaseException):
    """The machine is off: no code after this point runs."""


@dataclass
class Node:
    """A file: what programs see, what is on the disk, and what is pending."""

    cached: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Callable[[bytearray], None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        write_at(self.cached, offset, data)
        at = offset
        while at < offset + len(data):
            upto = min(offset + len(data), (at // SECTOR + 1) * SECTOR)
            piece = bytes(data[at - offset : upto - offset])
            self.pending.append(lambda contents, at=at, piece=piece: write_at(contents, at, piece))  # type: ignore[misc]
            at = upto

    def truncate(self, length: int) -> None:
        del self.cached[length:]
        self.pending.append(lambda contents: contents.__delitem__(slice(length, None)))

    def sync(self) -> None:
        for apply in self.pending:
            apply(self.durable)
        self.pending = []


def write_at(contents: bytearray, offset: int, data: bytes) -> None:
    contents.extend(bytes(max(0, offset - len(contents))))
    contents[offset : offset + len(data)] = data


Fault = int | None
"""An errno, or None for a crash."""


class SimulatedDisk:
    """`Files` with a page cache. `faults` lists the calls at which an error or a crash happens."""

    def __init__(self, faults: dict[int, Fault] | None = None) -> None:
        self.faults = faults or {}
        self.calls = 0
        self.full = False
        self.crashed = False
        self.nodes: dict[Path, Node] = {}
        self.durable_nodes: dict[Path, Node] = {}
        self.pending_names: list[Callable[[dict[Path, Node]], None]] = []
        self.locks: set[Path] = set()

    def call(self, half: Callable[[], None] = lambda: None) -> None:
        """Called for every operation; a failing one is half done."""
        if self.crashed:
            raise Crashed
        number, self.calls = self.calls, self.calls + 1
        if number in self.faults:
            half()
            fault = self.faults[number]
            if fault is None:
                self.crashed = True
                raise Crashed
            raise OSError(fault, os.strerror(fault))

    def killed(self) -> SimulatedDisk:
        """The disk for the next process: the page cache survives, locks do not."""
        after = SimulatedDisk()
        after.nodes, after.durable_nodes, after.pending_names = self.nodes, self.durable_nodes, self.pending_names
        return after

    def rebooted(self, keep: Callable[[], bool]) -> SimulatedDisk:
        """The disk after a power cut: each unsynced sector is there or not, and names up to some change."""
        for change in self.pending_names:
            if not keep():
                break
            change(self.durable_nodes)
        after = SimulatedDisk()
        for path, node in self.durable_nodes.items():
            contents = bytearray(node.durable)
            for apply in node.pending:
                if keep():
                    apply(contents)
            after.nodes[path] = Node(contents, bytearray(contents))
        after.durable_nodes = dict(after.nodes)
        return after

    def change_names(self, change: Callable[[dict[Path, Node]], None]) -> None:
        change(self.nodes)
        self.pending_names.append(change)

    def names(self, directory: Path) -> list[str]:
        self.call()
        return [path.name for path in self.nodes if path.parent == directory]

    def make_directory(self, directory: Path) -> None:
        self.call()

    def create(self, path: Path) -> SimulatedFile:
        self.call()
        self.require_space()
        node = Node()
        self.change_names(lambda nodes: nodes.__setitem__(path, node))
        return SimulatedFile(self, node)

    def open(self, path: Path) -> SimulatedFile:
        self.call()
        if path not in self.nodes:
            raise FileNotFoundError(path)
        return SimulatedFile(self, self.nodes[path])

    open_to_read = open

    def rename(self, source: Path, target: Path) -> None:
        self.call()
        node = self.nodes[source]

        def change(nodes: dict[Path, Node]) -> None:
            nodes.pop(source)
            nodes[target] = node

        self.change_names(change)

    def remove(self, path: Path) -> None:
        self.call()
        self.change_names(lambda nodes: nodes.__delitem__(path))

    def sync_directory(self, directory: Path) -> None:
        # A failed sync may have lost the changes; ext4 would stop altogether. Here they stay pending.
        self.call()
        for change in self.pending_names:
            change(self.durable_nodes)
        self.pending_names = []

    def lock(self, path: Path) -> SimulatedLock:
        if path in self.locks:
            raise LogInUse(str(path))
        self.locks.add(path)
        return SimulatedLock(self, path)

    def require_space(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class SimulatedLock:
    def __init__(self, disk: SimulatedDisk, path: Path) -> None:
        self.disk, self.path = disk, path

    def release(self) -> None:
        self.disk.locks.discard(self.path)


class SimulatedFile:
    def __init__(self, disk: SimulatedDisk, node: Node) -> None:
        self.disk, self.node = disk, node

    def size(self) -> int:
        self.disk.call()
        return len(self.node.cached)

    def read(self, offset: int, length: int) -> bytes:
        self.disk.call()
        return bytes(self.node.cached[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        def half() -> None:
            self.node.write(offset, data[: len(data) // 2])

        self.disk.call(half)
        if self.disk.full and offset + len(data) > len(self.node.cached):
            half()
            self.disk.require_space()
        self.node.write(offset, data)

    def truncate(self, length: int) -> None:
        self.disk.call()
        self.node.truncate(length)

    def sync(self) -> None:
        # A failed sync marks the pages clean though they never reached the disk: no later sync brings them there.
        self.disk.call(self.node.pending.clear)
        self.node.sync()

    def close(self) -> None:
        pass


def keep_nothing() -> bool:
    return False


def keep_everything() -> bool:
    return True


def keep_some(seed: int) -> Callable[[], bool]:
    rng = random.Random(seed)
    return lambda: rng.random() < 0.5
