"""`rl4sys.utils.util`: the structured logger, and actions as bytes. It needs no torch."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rl4sys.client.observation_reader import as_array
from rl4sys.client.original_action import RL4SysAction
from rl4sys.experience import Array

_NOTHING = b"None"


class StructuredLogger:
    """Logs a message with named values, which appear as JSON."""

    def __init__(self, name: str, debug: bool = False) -> None:
        self.logger = logging.getLogger(name)
        if debug:
            self.logger.setLevel(logging.DEBUG)

    def debug(self, msg: str, **values: Any) -> None:
        """Log a detail."""
        self._log(logging.DEBUG, msg, values)

    def info(self, msg: str, **values: Any) -> None:
        """Log progress."""
        self._log(logging.INFO, msg, values)

    def warning(self, msg: str, **values: Any) -> None:
        """Log something unexpected."""
        self._log(logging.WARNING, msg, values)

    def error(self, msg: str, **values: Any) -> None:
        """Log a failure; `exc_info=True` adds the traceback."""
        self._log(logging.ERROR, msg, values)

    def is_debug_enabled(self) -> bool:
        """Whether details are logged."""
        return self.logger.isEnabledFor(logging.DEBUG)

    def is_info_enabled(self) -> bool:
        """Whether progress is logged."""
        return self.logger.isEnabledFor(logging.INFO)

    def _log(self, level: int, message: str, values: dict[str, Any]) -> None:
        if self.logger.isEnabledFor(level):
            trace = bool(values.pop("exc_info", False))
            context = json.dumps(values, default=_plain)
            self.logger.log(level, message, exc_info=trace, extra={"context": context})


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


@dataclass(frozen=True, slots=True)
class SerializedAction:
    """An action as bytes: arrays of float32, without their shapes."""

    obs: bytes
    action: bytes
    reward: bytes
    done: bool
    mask: bytes
    extra_data: dict[str, bytes] = field(default_factory=dict)


def serialize_tensor(tensor: Any) -> bytes:
    """An array, a tensor or a number as bytes of float32."""
    return _NOTHING if tensor is None else np.atleast_1d(as_array(tensor)).astype(np.float32).tobytes()


def deserialize_tensor(tensor_bytes: bytes) -> Array | None:
    """The flat array of `serialize_tensor`."""
    return None if tensor_bytes == _NOTHING else np.frombuffer(tensor_bytes, np.float32).copy()


def serialize_action(action: RL4SysAction) -> SerializedAction:
    """An action as bytes."""
    return SerializedAction(
        obs=serialize_tensor(action.obs),
        action=serialize_tensor(action.act),
        reward=serialize_tensor(action.rew),
        done=bool(action.done),
        mask=serialize_tensor(action.mask),
        extra_data={str(name): serialize_tensor(value) for name, value in action.data.items()},
    )


def deserialize_action(serialized: SerializedAction) -> RL4SysAction:
    """The action of `serialize_action`, with flat arrays."""
    reward = deserialize_tensor(serialized.reward)
    data = {name: deserialize_tensor(value) for name, value in serialized.extra_data.items()}
    return RL4SysAction(
        obs=deserialize_tensor(serialized.obs),
        action=deserialize_tensor(serialized.action),
        reward=None if reward is None else reward[0],
        done=serialized.done,
        mask=deserialize_tensor(serialized.mask),
        data={name: value.item() if value is not None and value.size == 1 else value for name, value in data.items()},
    )
