"""One training server, as the pages see it: asked every two seconds, once for all pages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rl4sys.operations.status_findings import Finding, findings, has_left, verdict
from rl4sys.operations.status_tables import message_values
from rl4sys.ui.fleet_history import FleetHistory
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

_TIMEOUT = 1.5
_AWAY = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
_LONGEST_PROBLEM = 300


class StatusSource(Protocol):
    """What answers Status: the processes of a server."""

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The status; raises `CallFailed`."""

    def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True)
class ServerView:
    """What is known about a server."""

    address: str
    status: Mapping[str, Any] | None = None
    """Its last status; None if it never answered."""
    found: tuple[Finding, ...] = ()
    at: float = 0.0
    """When it last answered, in seconds since 1970."""
    problem: str = ""
    """Why it does not answer; empty if it does."""

    @property
    def sentence(self) -> str:
        """`well: …`, or what is wrong."""
        if self.problem or self.status is None:
            return f"{self.address} {self.problem or 'has not been asked yet'}"
        return verdict(self.status, list(self.found))

    @property
    def problems(self) -> list[Finding]:
        """What is wrong, as far as it is known now."""
        if self.problem:
            return [Finding(True, f"server {self.address}", self.problem)]
        return [each for each in self.found if each.is_problem]

    @property
    def notes(self) -> list[Finding]:
        """What is worth knowing although it is not wrong."""
        return [] if self.problem else [each for each in self.found if not each.is_problem]

    @property
    def connected(self) -> list[Mapping[str, Any]]:
        """The clients that are connected."""
        if self.status is None or self.problem:
            return []
        return [client for client in self.status["clients"] if client["connected"] and not has_left(client)]

    def learner(self, name: str) -> Mapping[str, Any] | None:
        """The status of a learner; None if there is none of this name."""
        learners = [] if self.status is None else self.status["learners"]
        return next((each for each in learners if each["learner"] == name), None)

    def clients_of(self, name: str) -> list[Mapping[str, Any]]:
        """The clients of a learner."""
        clients = [] if self.status is None else self.status["clients"]
        return [each for each in clients if each["learner"] == name]


class WatchedServer:
    """Asks one server, and remembers what it said."""

    def __init__(self, address: str, source: StatusSource, wall_clock: Callable[[], float] = time.time) -> None:
        self.address, self._source, self._wall_clock = address, source, wall_clock
        self.view = ServerView(address)
        self.history = FleetHistory()
        self._versions: dict[str, tuple[int, float, bool]] = {}
        """The version of each learner, since when it is known, and whether its predecessor was seen."""

    def ask(self) -> None:
        """Ask once. A server that is away is no error: the view says so."""
        try:
            reply = self._source.status(status_pb2.StatusRequest(), timeout=_TIMEOUT)
        except CallFailed as error:
            self.view = replace(self.view, problem=_absence(error, self.view.at))
            return
        now, status = self._wall_clock(), message_values(reply)
        self.view = ServerView(self.address, status, tuple(findings(status)), now)
        self._note_versions(status, now)
        self.history.add(now, status, len({client["client"] for client in self.view.connected}))

    def version_age(self, learner: str) -> tuple[float, bool] | None:
        """How old the newest version of a learner is, in seconds, and whether that is exact or at least so much."""
        if learner not in self._versions:
            return None
        _, since, is_exact = self._versions[learner]
        return self.view.at - since, is_exact

    def close(self) -> None:
        """Close the connection."""
        self._source.close()

    def _note_versions(self, status: Mapping[str, Any], now: float) -> None:
        present = {learner["learner"]: int(learner["version"]) for learner in status["learners"]}
        known = {name: noted for name, noted in self._versions.items() if name in present}
        for name, version in present.items():
            if name not in known or known[name][0] != version:
                known[name] = (version, now, name in known)
        self._versions = known


def _absence(error: CallFailed, last: float) -> str:
    """What to say of a server that does not answer, or does not let the page look."""
    cause = " ".join(str(error).split())[:_LONGEST_PROBLEM]
    if error.code in _AWAY:
        since = f" since {time.strftime('%H:%M:%S', time.localtime(last))}" if last else ""
        return f"does not answer{since}. Is it running? Start one with: rl4sys serve"
    return f"refuses: {cause} ({error.code})"
