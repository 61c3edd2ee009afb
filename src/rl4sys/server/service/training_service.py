"""The training service: its calls as methods on messages, independent of the transport. It imports no torch."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from rl4sys.server.access.caller import ANYONE, Caller, Role
from rl4sys.server.access.quotas import Quotas
from rl4sys.server.access.sessions import Session, Sessions
from rl4sys.server.call_errors import cancelled, draining, exhausted, unavailable
from rl4sys.server.data_permissions import check_permissions
from rl4sys.server.learners.learners import Learners
from rl4sys.server.options import ServiceOptions
from rl4sys.server.reload import Reloaded, reloaded_options
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.service.act import PolicyRuntimes
from rl4sys.server.service.alert_metrics import AlertMetrics
from rl4sys.server.service.client_profiles import ClientProfiles
from rl4sys.server.service.housekeeping import Housekeeping
from rl4sys.server.service.join import (
    agreed_protocol,
    exploit_for_client,
    exploit_schema,
    find_learner,
    policy_for_client,
)
from rl4sys.server.service.learner_expiry import LearnerExpiry
from rl4sys.server.service.operations_service import OperationsService
from rl4sys.server.service.push import Push, expand, repair
from rl4sys.server.service.readiness import Readiness, readiness
from rl4sys.server.service.report import take_report
from rl4sys.server.service.server_alerts import ServerAlerts, require_sound_alerts
from rl4sys.server.service.server_history import ServerHistory
from rl4sys.server.service.status import StatusReporter
from rl4sys.server.service.watch import VersionWatch, pull
from rl4sys.wire import FailureReason, encode_action
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2
from rl4sys.wire.port_range import learner_name

_log = logging.getLogger(__name__)

_LONGEST_LINEAGE = 64
_OK = "OK"


class TrainingService:
    """The calls of `rl4sys.v1.Training`. Any thread may call any method; all raise `CallFailed`."""

    def __init__(
        self,
        data: Path | None,
        options: ServiceOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        warnings: ServerWarnings | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Resume every learner in `data`; None uses a temporary directory that is removed with the service."""
        self.options = options or ServiceOptions()
        self.warnings = warnings or ServerWarnings()
        self._limits = self.options.limits
        self.options.offers.require_sound(self.options.workers, self.options.plugins)
        require_sound_alerts(self.options.alerts)
        self._clock = clock
        self._learners = Learners(data, self.options, clock, wall_clock)
        self._sessions = Sessions(self._limits.max_sessions, self._limits.max_sessions_per_token, clock)
        self._quotas = Quotas(self._limits, clock)
        self._runtimes = PolicyRuntimes(self._limits.max_act_rows)
        metrics = AlertMetrics(self._learners, self._sessions, self.warnings, self._failed_calls, clock)
        self._alerts = ServerAlerts(metrics, self.options.alerts, self._limits, clock)
        self._reporter = StatusReporter(
            self._learners, self._sessions, self.options.durability, clock, self.warnings, self._alerts
        )
        profiles = ClientProfiles(self._sessions, self._report_seconds, clock, wall_clock)
        self.operations = OperationsService(
            self._learners, self._sessions, profiles, self._unrestricted_call, wall_clock
        )
        """The calls of operators."""
        self._expiry = LearnerExpiry(self._learners, self._sessions, self.operations.expire, clock, wall_clock)
        self._lock = threading.Lock()
        self._watchers: Counter[str] = Counter()
        """By token."""
        self._calls = 0
        self._idle = threading.Condition(self._lock)
        self._draining = False
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls that ended, by method and the name of the code; a Watch counts when it starts."""
        self._check_permissions()
        history = ServerHistory(self._learners, self._sessions, lambda: Counter(self.calls), clock, wall_clock)
        self._housekeeping = Housekeeping(
            *(self._learners.tidy, self._learners.check_storage, self._learners.let_sleep, self.remove_expired),
            *(self._check_permissions, self._alerts.look, history.look),
        )

    def join(
        self,
        request: training_pb2.JoinRequest,
        caller: Caller = ANYONE,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> training_pb2.JoinReply:
        """Find or create the learner of a client. A join that is refused or cancelled creates nothing."""
        name = learner_name(request.client, request.policy_id)
        with self._call("Join", caller), self._learners.joining(name) as underway:
            protocol = agreed_protocol(request)
            caller.require(request.client, request.policy_id)
            learner = find_learner(request, self._learners, self.options, caller)
            if learner.policy is None or learner.form is None:
                raise unavailable(f"The learner '{learner.name}' has no policy yet. Join again.")
            form, lineage = learner.form, learner.lineage
            explore = policy_for_client(request, learner.policy)
            if is_cancelled():
                raise cancelled()
            underway.claim()
            session = self._sessions.open(request, learner, form, caller)
            session.require_lineage()
            have = int(request.have) if request.HasField("have") else None
            learner.note_lineage(session.client, request.lineage[:_LONGEST_LINEAGE], have)
            _log.info(
                "Client %s joined learner %s.",
                *(session.client, learner.name),
                extra={"client": session.client, "learner": learner.name, "version": learner.version},
            )
            return training_pb2.JoinReply(
                protocol=protocol,
                learner=learner.name,
                session=session.id,
                schema=form.to_message(),
                schema_hash=form.hash,
                explore=explore,
                exploit=exploit_for_client(request, learner.exploit),
                action=None if request.ops else encode_action(learner.policy.action),
                exploit_schema=exploit_schema(session.exploits, learner.exploit),
                version=learner.version,
                lineage=lineage.id,
                replaced_lineages=lineage.replaced,
                limits=self._limits_message(),
                control=learner.orders.message(),
                report_seconds=self._report_seconds(),
                record_share=learner.record_share,
                accepts_fallback=learner.replays,
                accepts_zstd=True,
                accepts_incumbent=True,
            )

    def _report_seconds(self) -> float:
        """How often a client that joins now shall report: the more sessions there are, the less often."""
        limits = self._limits
        return limits.report_seconds and max(limits.report_seconds, len(self._sessions) / limits.max_reports_per_second)

    def push(self, request: training_pb2.PushRequest, caller: Caller = ANYONE) -> training_pb2.PushReply:
        """Store segments; those that the reply acknowledges are durable."""
        with self._call("Push", caller):
            session = self._sessions.get(request.session, caller)
            repair(session.learner.inbox)
            push = self._begin_push(session, request, caller)
            push.wait()
            return push.reply()

    async def push_async(self, request: training_pb2.PushRequest, caller: Caller = ANYONE) -> training_pb2.PushReply:
        """As `push`, for an event loop: other calls continue while the disk works."""
        with self._call("Push", caller):
            session = self._sessions.get(request.session, caller)
            if session.learner.inbox.is_broken:
                await asyncio.to_thread(repair, session.learner.inbox)
            push = self._begin_push(session, request, caller)
            await push.settled()
            return push.reply()

    def pull(self, request: training_pb2.PullRequest, caller: Caller = ANYONE) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in chunks."""
        with self._call("Pull", caller):
            yield from pull(self._sessions.get(request.session, caller), request)

    def watch(self, request: training_pb2.WatchRequest, caller: Caller = ANYONE) -> VersionWatch:
        """New versions as they are published."""
        with self._call("Watch", caller):
            session = self._sessions.get(request.session, caller)
            token, limits = caller.token, self._limits
            with self._lock:
                is_full = self._watchers.total() >= limits.max_watchers
                if is_full or (token and self._watchers[token] >= limits.max_watchers_per_token):
                    raise exhausted(
                        FailureReason.QUOTA, "The limit of watching clients is reached. Pull instead.", 10_000
                    )
                self._watchers[token] += 1
                session.activity.begin_watching()
            return VersionWatch(session, request, lambda: self._draining, lambda: self._watcher_left(token, session))

    def require_watching(self, request: training_pb2.WatchRequest, caller: Caller) -> None:
        """Raise unless the caller may still watch: tokens may be revoked or expire while streams are open."""
        caller.require_role(Role.CLIENT, "Watch")
        self._sessions.get(request.session, caller)

    def act(self, request: training_pb2.ActRequest, caller: Caller = ANYONE) -> training_pb2.ActReply:
        """Decide on the server."""
        with self._call("Act", caller):
            return self._runtimes.act(self._sessions.get(request.session, caller), request)

    async def act_async(self, request: training_pb2.ActRequest, caller: Caller = ANYONE) -> training_pb2.ActReply:
        """As `act`, for an event loop: other calls continue while a policy decides."""
        with self._call("Act", caller):
            return await self._runtimes.act_async(self._sessions.get(request.session, caller), request)

    def report(self, request: training_pb2.ReportRequest, caller: Caller = ANYONE) -> training_pb2.ReportReply:
        """Take the health of a client, and answer what it has to know."""
        with self._call("Report", caller):
            return take_report(self._sessions.get(request.session, caller), request, self._clock())

    def status(self, request: status_pb2.StatusRequest, caller: Caller = ANYONE) -> status_pb2.StatusReply:
        """The status of the server; also while it drains."""
        try:
            reply = self.current_status(request.learner, caller)
        except CallFailed as error:
            self.count("Status", error.code.value)
            raise
        self.count("Status", _OK)
        return reply

    def current_status(self, learner: str = "", caller: Caller = ANYONE) -> status_pb2.StatusReply:
        """The same, not counted as a call: of the whole server, or of one learner."""
        with self._lock:
            calls = self.calls.copy()
        return self._reporter.status(learner, calls, caller, is_draining=self._draining)

    def readiness(self) -> Readiness:
        """Whether experience can be stored, for probes."""
        return readiness(self._learners, is_draining=self._draining)

    def reload(self, options: ServiceOptions) -> Reloaded:
        """Use changed limits and experiments from now on; if they are wrong, raise `ConfigError` and change nothing."""
        self.options, changes = reloaded_options(self.options, options)
        limits = self._limits = self._quotas.limits = self.options.limits
        self._sessions.most, self._sessions.most_of_a_token = limits.max_sessions, limits.max_sessions_per_token
        self._runtimes.max_rows = limits.max_act_rows
        self._learners.use(self.options)
        self._alerts.use(self.options.alerts, limits)
        return changes

    def remove_expired(self) -> None:
        """Remove learners that no client has used for as long as the config says; called every second."""
        self._expiry.check(self._limits.expire_seconds)

    def count(self, method: str, code: str) -> None:
        """Count a call that ended; the transport counts those that it refused itself."""
        with self._lock:
            self.calls[method, code] += 1

    def drain(self, timeout: float = 10.0) -> None:
        """Refuse new calls, finish those under way, checkpoint every learner and close. A second call does nothing."""
        with self._lock:
            if self._draining:
                return
            self._draining = True
        for learner in self._learners.all():
            learner.begin_closing()
            learner.announce()
        with self._idle:
            self._idle.wait_for(lambda: self._calls == 0, timeout / 2)
        self._housekeeping.close()
        self._learners.close(timeout / 2)
        self._alerts.close()

    def __enter__(self) -> TrainingService:
        return self

    def __exit__(self, *_: object) -> None:
        self.drain()

    def _begin_push(self, session: Session, request: training_pb2.PushRequest, caller: Caller) -> Push:
        expand(request, self._limits)
        self._quotas.charge(session, request, caller)
        return Push(session, request, self._limits)

    def _call(self, method: str, caller: Caller, role: Role = Role.CLIENT) -> _Call:
        try:
            caller.require_role(role, method)
        except CallFailed as error:
            self.count(method, error.code.value)
            raise
        return _Call(self, method)

    def _unrestricted_call(self, method: str) -> _Call:
        """A call whose role is checked later."""
        return _Call(self, method)

    def _begin(self) -> None:
        with self._lock:
            if self._draining:
                raise draining()
            self._calls += 1

    def _end(self, method: str, error: BaseException | None) -> None:
        self.count(method, _code(error))
        with self._idle:
            self._calls -= 1
            self._idle.notify_all()

    def _check_permissions(self) -> None:
        check_permissions(self._learners.data, self.warnings)

    def _failed_calls(self) -> int:
        with self._lock:
            return sum(count for (_, code), count in self.calls.items() if code != _OK)

    def _watcher_left(self, token: str, session: Session) -> None:
        with self._lock:
            self._watchers[token] -= 1
            session.activity.end_watching(self._clock())

    def _limits_message(self) -> training_pb2.Limits:
        limits = self._limits
        return training_pb2.Limits(
            max_message_bytes=limits.max_message_bytes,
            max_segment_steps=limits.max_segment_steps,
            max_push_segments=limits.max_push_segments,
            max_outstanding_segments=limits.max_outstanding_segments,
            max_act_rows=limits.max_act_rows,
            max_pack_segments=limits.max_pack_segments,
        )


class _Call:
    """A call under way, for which draining waits."""

    def __init__(self, service: TrainingService, method: str) -> None:
        self._service, self._method = service, method

    def __enter__(self) -> None:
        self._service._begin()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._service._end(self._method, error)


def _code(error: BaseException | None) -> str:
    """The code of a call that ended; a cancelled generator or coroutine raises what is not an `Exception`."""
    if error is None:
        return _OK
    if isinstance(error, CallFailed):
        return error.code.value
    return (Code.INTERNAL if isinstance(error, Exception) else Code.CANCELLED).value
