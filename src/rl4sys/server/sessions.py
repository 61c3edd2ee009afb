"""Who has joined: opaque names for a client on a learner."""

from __future__ import annotations

import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from rl4sys.server.callers import Caller
from rl4sys.server.failing import precondition
from rl4sys.server.hosting import HostedLearner
from rl4sys.wire import FailureReason, SegmentFormat
from rl4sys.wire.calls import CallFailed, Code


@dataclass(slots=True)
class ClientFacts:
    """What is known of a client since the server started; what is stored is counted with the log."""

    client: str
    learner: HostedLearner
    software: str
    peer: str
    heard: float
    version: int | None = None
    repeated: int = 0
    delayed: int = 0
    received_bytes: int = 0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Session:
    """One client on one learner."""

    id: str
    facts: ClientFacts
    form: SegmentFormat

    @property
    def client(self) -> str:
        """The client's name."""
        return self.facts.client

    @property
    def learner(self) -> HostedLearner:
        """The learner that it uses."""
        return self.facts.learner


class Sessions:
    """The newest sessions; the longest unused give way, and their clients join again."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most, self._clock = most, clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._facts: OrderedDict[tuple[str, str], ClientFacts] = OrderedDict()

    def open(self, client: str, learner: HostedLearner, form: SegmentFormat, software: str, peer: str) -> Session:
        """A session for a client that may have others."""
        with self._lock:
            key = (client, learner.name)
            facts = self._facts.get(key)
            if facts is None:
                facts = self._facts[key] = ClientFacts(client, learner, software, peer, self._clock())
            facts.software, facts.peer, facts.heard = software, peer, self._clock()
            session = Session(secrets.token_urlsafe(18), facts, form)
            self._sessions[session.id] = session
            self._facts.move_to_end(key)
            for kept in (self._sessions, self._facts):
                if len(kept) > self._most:
                    kept.popitem(last=False)
            return session

    def get(self, id: str, caller: Caller) -> Session:
        """The session of this name, if the caller may use it."""
        with self._lock:
            session = self._sessions.get(id)
            if session is None:
                raise precondition(
                    FailureReason.UNKNOWN_SESSION, "The session is unknown to this server. Join again, then repeat."
                )
            if not caller.may_use(session.client):
                raise CallFailed(
                    Code.PERMISSION_DENIED, f"This token may not be used by client '{session.client}'. Use its own."
                )
            self._sessions.move_to_end(id)
            session.facts.heard = self._clock()
            return session

    def clients(self) -> list[ClientFacts]:
        """All clients that were heard of, by name."""
        with self._lock:
            return sorted(self._facts.values(), key=lambda facts: (facts.client, facts.learner.name))
