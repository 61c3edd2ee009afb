"""Checks that a replay buffer fits before it is built: refuses it, or shrinks it where the config allows that."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rl4sys.config import ConfigError
from rl4sys.experience import SegmentSchema
from rl4sys.replay.available_space import AvailableSpace
from rl4sys.replay.config import NO_FRAMES, BufferConfig, ReplayConfig
from rl4sys.replay.cost import USABLE_SHARE, ReplayCost, format_bytes

_log = logging.getLogger(__name__)


class ReplayTooLarge(ConfigError):
    """The replay buffer does not fit into the available memory or onto the disk."""


def require_space(cost: ReplayCost | None, space: AvailableSpace) -> None:
    """Raise `ReplayTooLarge` if the replay buffer does not fit."""
    if cost is None or cost.fits(space):
        return
    alternative = "" if cost.is_mapped else "; with buffer.storage=mmap the transitions are kept on the disk"
    raise ReplayTooLarge(
        f"buffer.size: the replay buffer does not fit: {cost}. {_available(space, cost)} Free some, or for a new run "
        f"set buffer.size to at most {cost.largest_capacity(space)} or buffer.on_low_memory=shrink{alternative}."
    )


def fit_replay(
    buffer: BufferConfig,
    schema: SegmentSchema,
    space: AvailableSpace,
    steps: int | None = None,
    frames: Mapping[str, int] = NO_FRAMES,
) -> BufferConfig:
    """The same buffer, or a smaller one if it does not fit and its config allows shrinking."""
    cost = buffer.cost(schema, steps, frames)
    if cost is None or cost.fits(space) or not isinstance(buffer, ReplayConfig) or buffer.on_low_memory != "shrink":
        return buffer
    size = cost.largest_capacity(space)
    if size < 1:
        return buffer
    smaller = buffer.model_copy(update={"size": size})
    _log.warning(
        "The replay buffer is made SMALLER: buffer.size is %s instead of %s, because %s does not fit. %s",
        *(f"{size:,}", f"{buffer.size:,}", cost, _available(space, cost)),
    )
    return smaller


def _available(space: AvailableSpace, cost: ReplayCost) -> str:
    found = [("memory", space.memory), ("disk", space.disk if cost.is_mapped else None)]
    parts = [f"{format_bytes(count)} of {name}" for name, count in found if count is not None]
    return f"Available: {' and '.join(parts)}, of which a replay buffer may take {USABLE_SHARE:.0%}."
