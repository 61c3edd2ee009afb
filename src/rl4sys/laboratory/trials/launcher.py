"""Orders, and what carries them out: processes of this machine today, a cluster with the same calls another day."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

_PATIENCE = 0.2
"""Seconds between two looks at whether somebody asked to stop."""

Report = Callable[[Mapping[str, Any]], None]
"""Tells whoever gave the order something, in plain values."""

Task = Callable[[Mapping[str, Any], Report, Callable[[], bool]], bool]
"""Does what an order's values say until it is done (true) or asked to stop (false)."""


@dataclass(frozen=True, slots=True)
class Order:
    """A task for a process of its own."""

    key: str
    """What it is called in reports; no two orders at work have the same."""
    task: str
    """`module:function` of a `Task`."""
    values: Mapping[str, Any]
    """What the task is given: plain values, as JSON has them."""
    directory: Path
    """Where what the process prints is kept."""


class Outcome(Enum):
    """How the work on an order ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    """On request: the same order later goes on from there."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reported:
    """What a task told."""

    key: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The work on an order is over."""

    key: str
    outcome: Outcome
    cause: str | None = None
    """Why it failed, if it did."""


News = Reported | Ended


class Launcher(Protocol):
    """Carries out orders, a few at a time. Only it knows where."""

    @property
    def has_room(self) -> bool:
        """Whether one more order can be started now."""

    @property
    def is_busy(self) -> bool:
        """Whether any order is being worked on."""

    def start(self, order: Order) -> None:
        """Begin with an order; there must be room."""

    def news(self, seconds: float) -> Sequence[News]:
        """What was told since the last call; waits up to so many seconds for the first of it."""

    def ask_to_stop(self) -> None:
        """Ask all that are at work to save and end."""

    def close(self) -> None:
        """End whatever is still at work, by force."""


class Listener(Protocol):
    """Hears how the work goes."""

    def started(self, order: Order) -> None:
        """Work on an order has begun."""

    def take(self, news: News) -> None:
        """Something was told."""


def carry_out(launcher: Launcher, orders: Iterable[Order | None], listener: Listener, stop: Callable[[], bool]) -> None:
    """Work on all orders, each taken when there is room for it; if `stop` says so, end politely with those at work.

    By force, if this is left by an exception, such as a second Ctrl-C. An order that is None says that whether there is
    more to do depends on how those at work end.
    """
    waiting = iter(orders)
    told_to_stop = False
    try:
        while True:
            while launcher.has_room and not stop():
                order = next(waiting, None)
                if order is None:
                    break
                launcher.start(order)
                listener.started(order)
            if not launcher.is_busy:
                return
            if stop() and not told_to_stop:
                told_to_stop = True
                launcher.ask_to_stop()
            for news in launcher.news(_PATIENCE):
                listener.take(news)
    finally:
        launcher.close()
