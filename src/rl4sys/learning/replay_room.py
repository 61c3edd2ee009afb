"""Sees to it that a replay fits before it is made: what cannot be held is refused, or made smaller where allowed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from rl4sys.config import ConfigError
from rl4sys.experience import SegmentSchema
from rl4sys.replay import SHARE, BufferConfig, ReplayConfig, ReplayCost, amount, disk_at_hand, memory_at_hand

_log = logging.getLogger(__name__)


class ReplayTooLarge(ConfigError):
    """A replay does not fit into the memory, or onto the disk, that is there."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes at hand; None where the system does not say."""

    memory: int | None
    disk: int | None

    @classmethod
    def at(cls, directory: Path) -> Room:
        """What this machine has, and the disk of a directory."""
        return cls(memory_at_hand(), disk_at_hand(directory))

    def holds(self, cost: ReplayCost) -> bool:
        """Whether the replay fits, and leaves enough for everything else."""
        return cost.fits(self.memory, self.disk)

    def most(self, cost: ReplayCost) -> int:
        """How many transitions such a replay may hold."""
        return cost.most(self.memory, self.disk)


def require_room(cost: ReplayCost | None, room: Room) -> None:
    """Refuse what does not fit."""
    if cost is None or room.holds(cost):
        return
    elsewhere = "" if cost.is_mapped else "; with buffer.storage=mmap the transitions lie on the disk"
    raise ReplayTooLarge(
        f"buffer.size: the replay does not fit: {cost}. {_at_hand(room, cost)} Free some, or for a new run set "
        f"buffer.size to at most {room.most(cost)} or buffer.on_low_memory=shrink{elsewhere}."
    )


def shrunk(buffer: BufferConfig, schema: SegmentSchema, room: Room, steps: int | None = None) -> BufferConfig:
    """The same buffer, or a smaller one where its config allows that and it does not fit."""
    cost = buffer.cost(schema, steps)
    if cost is None or room.holds(cost) or not isinstance(buffer, ReplayConfig) or buffer.on_low_memory != "shrink":
        return buffer
    size = room.most(cost)
    if size < 1:
        return buffer
    smaller = buffer.model_copy(update={"size": size})
    _log.warning(
        "The replay is made SMALLER: buffer.size is %s instead of %s, since %s does not fit. %s",
        *(f"{size:,}", f"{buffer.size:,}", cost, _at_hand(room, cost)),
    )
    return smaller


def _at_hand(room: Room, cost: ReplayCost) -> str:
    found = [("memory", room.memory), ("disk", room.disk if cost.is_mapped else None)]
    parts = [f"{amount(count)} of {name}" for name, count in found if count is not None]
    return f"At hand are {' and '.join(parts)}, of which a replay may take {SHARE:.0%}."
