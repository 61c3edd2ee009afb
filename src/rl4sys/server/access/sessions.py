"""Sessions: a client that joined a learner, under an opaque id."""

from __future__ import annotations

import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from rl4sys.server.access.caller import Caller
from rl4sys.server.access.client_profile import ClientProfile
from rl4sys.server.access.client_programs import ClientPrograms
from rl4sys.server.call_errors import precondition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.wire import FailureReason, SegmentFormat
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

_LONGEST_SOFTWARE = 128
_EXPLOITING = (training_pb2.ACTING_MODE_EXPLOIT, training_pb2.ACTING_MODE_OBSERVE)


@dataclass(slots=True)
class ClientActivity:
    """What a client has done since the server started; stored segments are counted with the log."""

    client: str
    learner: HostedLearner
    software: str = ""
    peer: str = ""
    last_call: float | None = None
    """Time of its last call; None if there was none since the server started."""
    version: int | None = None
    repeated: int = 0
    delayed: int = 0
    received_bytes: int = 0
    server_decisions: int = 0
    """Rows of Act."""
    refused: Counter[str] = field(default_factory=Counter)
    report: status_pb2.ClientReport | None = None
    """Its last report."""
    reported_at: float = 0.0
    watching: int = 0
    """Open Watch streams."""
    disconnected_at: float | None = None
    """When the last of them ended; None while there is one, and before the first."""
    profile: ClientProfile | None = None
    """The latest order to measure what it costs."""
    programs: ClientPrograms = field(init=False)

    def __post_init__(self) -> None:
        self.programs = ClientPrograms(self.client)

    def begin_watching(self) -> None:
        """Count a Watch stream that was opened."""
        self.watching += 1
        self.disconnected_at = None

    def end_watching(self, now: float) -> None:
        """Count a Watch stream that has ended."""
        self.watching -= 1
        if not self.watching:
            self.disconnected_at = now


@dataclass(frozen=True, slots=True)
class Session:
    """One client on one learner."""

    id: str
    activity: ClientActivity
    form: SegmentFormat
    policy_id: str = ""
    """The policy id of a shared learner; empty for the client's own."""
    token: str = ""
    """The token that opened it, as `Caller.token` identifies it."""
    epoch: int = 0
    """The start of the client that opened it; 0 if it did not say."""
    exploits: bool = False
    """Whether the exploit policy decides where it calls Act."""

    @property
    def client(self) -> str:
        """The client's name."""
        return self.activity.client

    @property
    def learner(self) -> HostedLearner:
        """The learner that it trains."""
        return self.activity.learner

    @property
    def has_ended(self) -> bool:
        """Whether the learner was replaced, or has begun another lineage, since the client joined."""
        return bool(self.learner.departure) or self.form.lineage != self.learner.lineage.id

    def require_lineage(self) -> None:
        """Raise if the learner was replaced, or has begun another lineage, since the client joined."""
        if self.learner.departure:
            raise precondition(FailureReason.UNKNOWN_SESSION, self.learner.departure)
        if self.form.lineage != self.learner.lineage.id:
            raise precondition(
                FailureReason.UNKNOWN_SESSION,
                f"The learner '{self.learner.name}' has begun another lineage. Join again, then repeat.",
            )


class Sessions:
    """A bounded number of sessions; the least recently used is dropped, and its client joins again.

    A token at its own limit drops one of its own sessions: it cannot end those of others.
    """

    def __init__(self, most: int, most_of_a_token: int, clock: Callable[[], float]) -> None:
        self.most, self.most_of_a_token = most, most_of_a_token
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._of_token: dict[str, OrderedDict[str, None]] = {}
        self._activities: OrderedDict[tuple[str, str], ClientActivity] = OrderedDict()

    def __len__(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    def open(
        self, request: training_pb2.JoinRequest, learner: HostedLearner, form: SegmentFormat, caller: Caller
    ) -> Session:
        """A new session for a client, which may have others."""
        client, epoch, now = request.client, int(request.epoch), self._clock()
        with self._lock:
            key = (client, learner.name)
            activity = self._activities.get(key)
            if activity is None or activity.learner is not learner:
                activity = self._activities[key] = ClientActivity(client, learner)
            activity.software, activity.peer = request.software[:_LONGEST_SOFTWARE], caller.peer
            activity.last_call = now
            activity.programs.note(epoch, caller.peer, now)
            exploits = not request.ops and request.mode in _EXPLOITING
            session = Session(
                secrets.token_urlsafe(18), activity, form, request.policy_id, caller.token, epoch, exploits
            )
            self._keep(session)
            self._activities.move_to_end(key)
            if len(self._activities) > self.most:
                self._activities.popitem(last=False)
            return session

    def get(self, id: str, caller: Caller) -> Session:
        """The session with this id, if the caller may use it."""
        with self._lock:
            session = self._sessions.get(id)
            if session is None:
                raise precondition(
                    FailureReason.UNKNOWN_SESSION, "The session is unknown to this server. Join again, then repeat."
                )
            if not (caller.may_use(session.client) and caller.may_join(session.policy_id)):
                # Without naming the client that it belongs to.
                raise CallFailed(Code.PERMISSION_DENIED, "This token may not use this session. Join with it first.")
            session.require_lineage()
            self._sessions.move_to_end(id)
            if session.token:
                self._of_token[session.token].move_to_end(id)
            now = session.activity.last_call = self._clock()
            session.activity.programs.note(session.epoch, caller.peer, now)
            return session

    def _keep(self, session: Session) -> None:
        self._sessions[session.id] = session
        if session.token:
            own = self._of_token.setdefault(session.token, OrderedDict())
            own[session.id] = None
            if len(own) > self.most_of_a_token:
                self._forget(next(iter(own)))
        if len(self._sessions) > self.most:
            self._forget(next(iter(self._sessions)))

    def _forget(self, id: str) -> None:
        token = self._sessions.pop(id).token
        if token:
            del self._of_token[token][id]
            if not self._of_token[token]:
                del self._of_token[token]

    def forget_learner(self, learner: HostedLearner) -> None:
        """Drop everything about a learner that was deleted or replaced."""
        with self._lock:
            for id in [id for id, session in self._sessions.items() if session.learner is learner]:
                self._forget(id)
            for key in [key for key, activity in self._activities.items() if activity.learner is learner]:
                del self._activities[key]

    def clients(self) -> list[ClientActivity]:
        """The activity of all clients that called, by name."""
        with self._lock:
            return sorted(self._activities.values(), key=lambda activity: (activity.client, activity.learner.name))
