"""The Status call: the state of the server, its learners and its clients."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rl4sys.records import Durability
from rl4sys.server.access.caller import Caller, Role
from rl4sys.server.access.sessions import ClientActivity, Sessions
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learners import Learners
from rl4sys.server.learners.operator_orders import ClientOrder
from rl4sys.server.learners.stored_segments import ClientCounts
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.service.alert_metrics import CONNECTED_SECONDS
from rl4sys.server.service.readiness import readiness
from rl4sys.server.service.server_alerts import ServerAlerts
from rl4sys.server.service.usage import RateMeter, UsageMeter
from rl4sys.version import __version__
from rl4sys.wire import PROTOCOL, Failure
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2
from rl4sys.wire.port_range import shared_policy

_SOFTWARE = f"rl4sys/{__version__}"
_MOST_CLIENTS = 10_000
"""Clients in one reply."""
_CLIENTS_BYTES = 3 << 20
"""Bytes of them: the reply must fit a message."""
_STATES = {
    Condition.STARTING: status_pb2.LEARNER_STATE_STARTING,
    Condition.REFUSED: status_pb2.LEARNER_STATE_FAILED,
    Condition.FAILED: status_pb2.LEARNER_STATE_FAILED,
    Condition.HELD: status_pb2.LEARNER_STATE_HELD,
    Condition.STOPPED: status_pb2.LEARNER_STATE_STOPPED,
    Condition.PAUSED: status_pb2.LEARNER_STATE_PAUSED,
    Condition.SLEEPING: status_pb2.LEARNER_STATE_SLEEPING,
    Condition.HELD: status_pb2.LEARNER_STATE_HELD,
}


class StatusReporter:
    """Builds the status of learners and clients."""

    def __init__(
        self,
        learners: Learners,
        sessions: Sessions,
        durability: Durability,
        clock: Callable[[], float],
        warnings: ServerWarnings,
        alerts: ServerAlerts,
    ) -> None:
        self._learners, self._sessions, self._durability, self._clock = learners, sessions, durability, clock
        self._warnings, self._alerts = warnings, alerts
        self._began = clock()
        self._usage, self._rates = UsageMeter(clock), RateMeter(clock)
        self._size = _DirectorySize(learners.data, clock)

    def status(
        self,
        learner: str,
        calls: Counter[tuple[str, str]],
        caller: Caller,
        *,
        is_draining: bool,
    ) -> status_pb2.StatusReply:
        """The whole server or one learner, restricted to what the caller may see."""
        seen = [each for each in self._learners.all() if may_see(caller, each.name)]
        learners = [each for each in seen if learner in ("", each.name)]
        problems = self._learners.problems.items()
        unopened = {name: why for name, why in problems if learner in ("", name) and may_see(caller, name)}
        if learner and not learners and not unopened:
            names = ", ".join(each.name for each in seen) or "none"
            raise CallFailed(Code.NOT_FOUND, f"There is no learner '{learner}'; there are: {names}.", Failure())
        called = [activity for activity in self._sessions.clients() if learner in ("", activity.learner.name)]
        called = [activity for activity in called if caller.may_use(activity.client)]
        clients, unlisted = self._clients(learners, called, caller)
        counts = Counter(activity.learner.name for activity in called)
        reply = status_pb2.StatusReply(
            server=self._server(is_draining),
            learners=[self._learner(each, counts[each.name], called) for each in learners],
            clients=clients,
        )
        reply.server.connected_clients = len({client.client for client in clients if client.connected})
        reply.server.unlisted_clients = unlisted
        if caller.role is not Role.CLIENT:
            # They name files of the server.
            reply.server.warnings.extend(self._warnings.all())
        for alert in self._alerts.firing():
            if learner in ("", alert.learner) and self._may_see_alert(caller, alert.learner):
                reply.server.alerts.add(**alert._asdict())
        for (method, code), count in sorted(calls.items()):
            reply.server.calls.add(method=method, code=code, count=count)
            if code != "OK":
                reply.server.failed_calls[code] += count
        for name, why in unopened.items():
            reply.learners.add(learner=name, state="LEARNER_STATE_FAILED", problem=why)
        return reply

    def _may_see_alert(self, caller: Caller, learner: str) -> bool:
        return may_see(caller, learner) if learner else caller.role is not Role.CLIENT

    def _server(self, is_draining: bool) -> status_pb2.ServerStatus:
        usage = self._usage.of(os.getpid())
        ready = readiness(self._learners, is_draining=is_draining)
        return status_pb2.ServerStatus(
            software=_SOFTWARE,
            protocol=PROTOCOL,
            state=f"SERVER_STATE_{ready.state.upper()}",
            problem=ready.problem,
            uptime_seconds=self._clock() - self._began,
            durability=self._durability.value,
            cpu=usage.cpu,
            cpu_seconds=usage.cpu_seconds,
            memory_bytes=usage.memory_bytes,
            data_bytes=self._size.bytes(),
            disk_free_bytes=self._learners.storage.free_bytes,
        )

    def _clients(
        self, learners: list[HostedLearner], called: list[ClientActivity], caller: Caller
    ) -> tuple[list[status_pb2.ClientStatus], int]:
        """Clients by name, and how many are left out: those that called since the start take precedence."""
        known = {(activity.client, activity.learner.name) for activity in called}
        silent = [
            ClientActivity(client, learner)
            for learner in learners
            for client in list(learner.inbox.stored.clients)
            if (client, learner.name) not in known and caller.may_use(client)
        ]
        listed: list[status_pb2.ClientStatus] = []
        room = _CLIENTS_BYTES
        for activity in (called + silent)[:_MOST_CLIENTS]:
            client = self._client(activity)
            room -= client.ByteSize()
            if room < 0:
                break
            listed.append(client)
        listed.sort(key=lambda client: (client.client, client.learner))
        return listed, len(called) + len(silent) - len(listed)

    def _learner(self, learner: HostedLearner, clients: int, called: list[ClientActivity]) -> status_pb2.LearnerStatus:
        order = learner.orders.order
        segments, length = learner.inbox.queued()
        stored = list(learner.inbox.stored.clients.values())
        count = sum(counts.segments for counts in stored)
        usage = self._usage.of(learner.process) if learner.process is not None else None
        status = status_pb2.LearnerStatus(
            learner=learner.name,
            algorithm=learner.setup.algorithm,
            state=_STATES.get(learner.condition, _running(segments, is_paused=learner.orders.is_paused)),
            problem=learner.problem or learner.inbox.problem,
            restarts=learner.worker.restarts.count,
            version=learner.version,
            clients=clients,
            queued_segments=segments,
            queued_bytes=length,
            stored_segments=count,
            stored_steps=sum(counts.steps for counts in stored),
            segments_per_second=self._rates.of(f"learner {learner.name}", count),
            cpu=usage.cpu if usage else 0.0,
            memory_bytes=usage.memory_bytes if usage else 0,
            log_bytes=learner.inbox.log_bytes,
            stored_bytes=sum(counts.bytes for counts in stored),
            cpu_seconds=usage.cpu_seconds if usage else 0.0,
            device=learner.device,
            frozen=learner.commands.is_frozen,
            notice=learner.notice,
            control=order.mode,
            control_reason=order.reason,
            control_sequence=order.sequence,
            obeying_clients=_obeying(learner, order, called),
            lineage=learner.lineage.id,
            record_share=learner.record_share,
            refolded_version=learner.history.refolded_version,
            weights=learner.newest.blob.size if learner.newest is not None else 0,
            other_lineages=[
                status_pb2.OtherLineage(lineage=held.lineage, version=held.version, clients=held.clients)
                for held in learner.history.other_lineages.holders()
            ],
            checkpoints=[status_pb2.CheckpointStatus(**each._asdict()) for each in learner.checkpoints],
            log_end=learner.inbox.stored.position,
        )
        progress = learner.progress
        if progress is not None:
            status.learned_steps, status.updates = progress.steps, progress.updates
            status.episodes = progress.episodes
            status.unused_steps.update(progress.unused)
            status.metrics.update(progress.metrics)
            status.outcomes.extend(status_pb2.VersionOutcome(**each._asdict()) for each in progress.outcomes)
            if progress.mean_return is not None:
                status.mean_return = progress.mean_return
        if learner.saved_at is not None:
            status.checkpoint_age_seconds = self._clock() - learner.saved_at
        return status

    def _client(self, activity: ClientActivity) -> status_pb2.ClientStatus:
        counts = activity.learner.inbox.stored.clients.get(activity.client, ClientCounts())
        silent = self._clock() - (self._began if activity.last_call is None else activity.last_call)
        return status_pb2.ClientStatus(
            client=activity.client,
            learner=activity.learner.name,
            software=activity.software,
            peer=activity.peer,
            silent_seconds=silent,
            connected=activity.last_call is not None and silent <= CONNECTED_SECONDS,
            version=activity.version,
            stored_segments=counts.segments,
            stored_steps=counts.steps,
            stored_bytes=counts.bytes,
            repeated_segments=activity.repeated,
            refused_segments=dict(activity.refused),
            delayed_pushes=activity.delayed,
            received_bytes=activity.received_bytes,
            segments_per_second=self._rates.of(f"client {activity.client} of {activity.learner.name}", counts.segments),
            warning=activity.programs.warning(self._clock()),
            report=activity.report,
            server_decisions=activity.server_decisions,
            report_age_seconds=0.0 if activity.report is None else self._clock() - activity.reported_at,
            disconnected_seconds=None if (ended := activity.disconnected_at) is None else self._clock() - ended,
        )


def may_see(caller: Caller, learner: str) -> bool:
    """Whether the caller may see a learner. A client's own learner has the name of the client."""
    policy_id = shared_policy(learner)
    return caller.may_use(learner) if policy_id is None else caller.may_join(policy_id)


def _obeying(learner: HostedLearner, order: ClientOrder, called: list[ClientActivity]) -> int:
    """How many clients of a learner reported to have obeyed an order."""
    reports = [each.report for each in called if each.learner is learner and each.report is not None]
    return sum(order.sequence > 0 and report.control_sequence >= order.sequence for report in reports)


def _running(queued: int, *, is_paused: bool) -> status_pb2.LearnerState:
    if is_paused:
        return status_pb2.LEARNER_STATE_PAUSED
    return status_pb2.LEARNER_STATE_LEARNING if queued else status_pb2.LEARNER_STATE_WAITING


class _DirectorySize:
    """The bytes of a directory, counted again so seldom that it takes at most a hundredth of a core."""

    _SHARE = 0.01

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        self._directory, self._clock = directory, clock
        self._bytes, self._due = 0, clock()

    def bytes(self) -> int:
        began = self._clock()
        if began >= self._due:
            self._bytes = _size(self._directory)
            self._due = began + (self._clock() - began) / self._SHARE
        return self._bytes


def _size(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                # Files may be removed meanwhile.
                continue
    return total
