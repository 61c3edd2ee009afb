"""What operators have ordered for one learner and its clients, in a file of its own: it does not affect weights."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.server.learners.learner_setup import SetupDamaged
from rl4sys.wire.generated import training_pb2

_FILE = "orders.json"
_FORMAT = 1
_MODES = {
    "follow": training_pb2.CONTROL_MODE_FOLLOW,
    "frozen": training_pb2.CONTROL_MODE_FROZEN,
    "off": training_pb2.CONTROL_MODE_OFF,
}


@dataclass(frozen=True, slots=True)
class ClientOrder:
    """An order to the clients of a learner. They obey the one with the greatest sequence that they have seen."""

    mode: str = "follow"
    """`follow`, `frozen` or `off`."""
    sequence: int = 0
    """0 if no order was ever given."""
    reason: str = ""
    ordered_by: str = ""

    def to_message(self) -> training_pb2.Control:
        """The order as it is sent."""
        return training_pb2.Control(
            mode=_MODES[self.mode], sequence=self.sequence, reason=self.reason, ordered_by=self.ordered_by
        )


class OperatorOrders:
    """The orders for one learner. Each is on the disk before it is in force. Any thread may call any method."""

    def __init__(self, directory: Path, wall_clock: Callable[[], float] = time.time) -> None:
        """Read the file; a learner without one has never had an order."""
        self._path, self._wall_clock = directory / _FILE, wall_clock
        self._lock = threading.Lock()
        self.order = ClientOrder()
        self.is_paused = False
        try:
            raw = json.loads(self._path.read_bytes())
            if raw["format"] != _FORMAT or raw["order"]["mode"] not in _MODES:
                raise ValueError("its format or the mode of its order is another")
            self.order, self.is_paused = ClientOrder(**raw["order"]), bool(raw["is_paused"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            # Going on without it could undo an order to stop.
            raise SetupDamaged(
                f"{self._path} cannot be read: {type(error).__name__}: {error}. Restore it from a backup, or remove it "
                f"and repeat the orders that are in force; `rl4sys learners audit` lists them."
            ) from error

    def message(self) -> training_pb2.Control | None:
        """The order in force for the clients; None if none was ever given."""
        return self.order.to_message() if self.order.sequence else None

    def give(self, mode: str, reason: str, ordered_by: str) -> ClientOrder:
        """Give the clients an order; it is durable when this returns."""
        with self._lock:
            # At least the time, so that sequences increase even if this file is lost.
            sequence = max(self.order.sequence + 1, int(self._wall_clock() * 1_000))
            order = ClientOrder(mode, sequence, reason, ordered_by)
            self._write(order, self.is_paused)
            self.order = order
            return order

    def pause(self, is_paused: bool) -> None:
        """Order the learner itself to pause, or to learn."""
        with self._lock:
            self._write(self.order, is_paused)
            self.is_paused = is_paused

    def copy_to(self, directory: Path) -> None:
        """Write the order for the clients into the directory of a learner that takes the place of this one."""
        with self._lock:
            replace_file(directory / _FILE, _encoded(self.order, is_paused=False))

    def _write(self, order: ClientOrder, is_paused: bool) -> None:
        replace_file(self._path, _encoded(order, is_paused=is_paused))


def control_mode_name(mode: int) -> str | None:
    """The name of a mode on the wire; None for a mode that is none."""
    return next((name for name, number in _MODES.items() if number == mode), None)


def _encoded(order: ClientOrder, *, is_paused: bool) -> bytes:
    return json.dumps({"format": _FORMAT, "order": asdict(order), "is_paused": is_paused}, indent=1).encode()
