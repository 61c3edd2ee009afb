"""Orders of operators to the clients of a learner, and the file in which a client remembers the latest one."""

from __future__ import annotations

import enum
import json
import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.wire.generated import training_pb2

_log = logging.getLogger(__name__)


class ControlMode(enum.StrEnum):
    """What clients have to do."""

    FOLLOW = "follow"
    """Act with the newest version."""
    FROZEN = "frozen"
    """Keep acting with the present version."""
    OFF = "off"
    """Do not act with any version: the fallback decides."""


_MODES = {
    training_pb2.CONTROL_MODE_UNSPECIFIED: ControlMode.FOLLOW,
    training_pb2.CONTROL_MODE_FOLLOW: ControlMode.FOLLOW,
    training_pb2.CONTROL_MODE_FROZEN: ControlMode.FROZEN,
    training_pb2.CONTROL_MODE_OFF: ControlMode.OFF,
}


@dataclass(frozen=True, slots=True)
class ControlOrder:
    """An order; the one with the greatest sequence counts."""

    mode: ControlMode = ControlMode.FOLLOW
    sequence: int = 0
    reason: str = ""
    ordered_by: str = ""

    @classmethod
    def from_message(cls, message: training_pb2.Control) -> ControlOrder:
        """The order in a message. A mode of a later protocol is obeyed as `off`, the most careful one."""
        mode = _MODES.get(message.mode, ControlMode.OFF)
        return cls(mode, message.sequence, message.reason, message.ordered_by)

    def __str__(self) -> str:
        by = f" by {self.ordered_by}" if self.ordered_by else ""
        return f"{self.mode}{by}: {self.reason}" if self.reason else f"{self.mode}{by}"


class ControlFile:
    """Remembers the latest order, so that it is obeyed after a restart even while the server is unreachable."""

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / f"{name}.control"
        self._saving = threading.Lock()
        self._saved = 0
        """The sequence of the order in the file."""

    def load(self) -> ControlOrder:
        """The latest order; without one, clients follow. A file that cannot be read counts as `off`."""
        try:
            raw = json.loads(self._path.read_bytes())
            order = ControlOrder(
                ControlMode(raw["mode"]), int(raw["sequence"]), str(raw["reason"]), str(raw["ordered_by"])
            )
            self._saved = order.sequence
            return order
        except FileNotFoundError:
            return ControlOrder()
        except (OSError, KeyError, TypeError, ValueError) as error:
            _log.error(
                "The operator's order in %s cannot be read: %s. The policy stays off until the server repeats its "
                "order; delete the file if there was none.",
                *(self._path, error),
            )
            return ControlOrder(ControlMode.OFF, 0, f"{self._path} cannot be read")

    def save(self, order: ControlOrder) -> None:
        """Write the order durably, unless a later one was written. A failing disk is logged; it is obeyed anyway."""
        text = json.dumps(
            {
                "mode": order.mode,
                "sequence": order.sequence,
                "reason": order.reason,
                "ordered_by": order.ordered_by,
            }
        )
        # Two threads may obey two orders at once.
        with self._saving:
            if order.sequence <= self._saved:
                return
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(self._path, text.encode())
                self._saved = order.sequence
            except OSError as error:
                _log.warning("The operator's order cannot be kept in %s: %s.", self._path, error)
