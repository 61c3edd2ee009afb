"""The calls of operators, independent of the transport: each is allowed, carried out and written to the audit log."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict

from rl4sys.server.access.caller import ANYONE, Caller, Role
from rl4sys.server.access.sessions import Sessions
from rl4sys.server.call_errors import invalid, unavailable
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learners import Learners
from rl4sys.server.learners.operator_orders import control_mode_name
from rl4sys.server.service.audit_log import AuditLog, AuditRecord
from rl4sys.server.service.client_profiles import ClientProfiles
from rl4sys.server.service.learner_management import LearnerManagement
from rl4sys.server.service.status import may_see
from rl4sys.suggestions import did_you_mean
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import operations_pb2

_log = logging.getLogger(__name__)

_LONGEST_REASON = 1_024
_LONGEST_SOURCE = 256
_INSTALLED = {
    operations_pb2.INSTALLED_KIND_POLICY: "install",
    operations_pb2.INSTALLED_KIND_STATE: "warm-start",
    operations_pb2.INSTALLED_KIND_EXPERIENCE: "warm-start",
}
"""The names of the commands."""
_SERVER = Caller(role=Role.OPERATOR, name="server")
"""Who removes learners that expire."""
_USUAL_ENTRIES = 100
_MOST_ENTRIES = 1_000


@dataclass(slots=True)
class _Command:
    """A command under way, as the audit log will show it."""

    caller: Caller
    name: str
    learner: str
    reason: str = ""
    operator_name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    """What it has done, in one sentence."""


class OperationsService:
    """The calls of `rl4sys.v1.Operations`. Any thread may call any method; all raise `CallFailed`."""

    def __init__(
        self,
        learners: Learners,
        sessions: Sessions,
        profiles: ClientProfiles,
        begin: Callable[[str], AbstractContextManager[None]],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """`begin` counts a call by its method, and refuses it while the server shuts down."""
        self._learners, self._begin, self._wall_clock = learners, begin, wall_clock
        self._profiles = profiles
        self._log = AuditLog(learners.data)
        self._management = LearnerManagement(learners, sessions)
        self._managing = threading.Lock()
        """One command at a time; orders to clients do not wait for it."""

    def control(self, request: operations_pb2.ControlRequest, caller: Caller = ANYONE) -> operations_pb2.ControlReply:
        """Order what the clients of a learner have to do."""
        mode = control_mode_name(request.mode) or ""
        command = _Command(caller, "control", request.learner, request.reason, request.operator_name, {"mode": mode})
        with self._begin("Control"), self._audited(command):
            if not mode:
                raise invalid("The order has no mode; order follow, frozen or off.")
            if mode != "follow" and not request.reason.strip():
                raise invalid(f"The order '{mode}' has no reason. Say why: people will look for it at night.")
            learner = self._find(request.learner, caller)
            order = self._learners.give_order(
                learner.name, mode, request.reason[:_LONGEST_REASON], request.operator_name[:128] or caller.who
            )
            watching = learner.listening
            command.message = f"The clients of '{learner.name}' are ordered: {mode}."
            return operations_pb2.ControlReply(control=order.to_message(), watching_clients=watching)

    def manage(self, request: operations_pb2.ManageRequest, caller: Caller = ANYONE) -> operations_pb2.ManageReply:
        """Carry out one command on one learner."""
        name = request.WhichOneof("command") or "none"
        arguments = MessageToDict(getattr(request, name)) if name != "none" else {}
        command = _Command(caller, name, request.learner, request.reason, request.operator_name, arguments)
        with self._begin("Manage"), self._audited(command):
            if name == "none":
                raise invalid("The request has no command.")
            with self._managing:
                command.message = self._carry_out(request, caller)
            return self._reply(command, request.fork.name)

    def _carry_out(self, request: operations_pb2.ManageRequest, caller: Caller) -> str:
        if request.learner in self._learners.problems and may_see(caller, request.learner):
            return self._management.carry_out_unopened(request.learner, request)
        learner = self._find(request.learner, caller)
        if request.WhichOneof("command") != "fork":
            return self._management.carry_out(learner, request)
        if not may_see(caller, request.fork.name):
            raise CallFailed(Code.PERMISSION_DENIED, f"This token may not use a learner '{request.fork.name[:128]}'.")
        return self._management.fork(learner, request.fork, caller.token)

    def export(self, request: operations_pb2.ExportRequest, caller: Caller = ANYONE) -> bytes:
        """The newest policy of a learner as a portable policy file."""
        command = _Command(caller, "export", request.learner, operator_name=request.operator_name)
        with self._begin("Export"), self._audited(command):
            learner = self._find(request.learner, caller)
            data = self._management.export(learner)
            command.message = f"Version {learner.version} was exported."
            return data

    def install(
        self, request: operations_pb2.InstallRequest, data: bytes, caller: Caller = ANYONE
    ) -> operations_pb2.ManageReply:
        """Let a learner continue from a policy, the state of an algorithm, or recorded experience."""
        kind = operations_pb2.InstalledKind.Name(request.kind) if request.kind in _INSTALLED else ""
        digest = hashlib.sha256(data).hexdigest()
        arguments = {"kind": kind, "source": request.source[:_LONGEST_SOURCE], "bytes": len(data), "sha256": digest}
        name = _INSTALLED.get(request.kind, "install")
        command = _Command(caller, name, request.learner, request.reason, request.operator_name, arguments)
        with self._begin("Install"), self._audited(command):
            if not kind:
                raise invalid("The request does not say what the file is: a policy, a state or experience.")
            if request.sha256.hex() != digest:
                raise invalid("The file was damaged on its way: its SHA-256 is another. Send it again.")
            with self._managing:
                learner = self._find(request.learner, caller)
                command.message = self._management.take(learner, request.kind, data, request.source[:_LONGEST_SOURCE])
            return self._reply(command)

    def expire(self, learner: HostedLearner, unused_seconds: float) -> None:
        """Remove a learner that was not used for as long as the config of the server allows."""
        arguments = {"unused_seconds": round(unused_seconds)}
        command = _Command(_SERVER, "expire", learner.name, "limits.expire_seconds", arguments=arguments)
        with self._begin("Expire"), self._audited(command), self._managing:
            command.message = self._management.expire(learner)

    def _reply(self, command: _Command, copy: str = "") -> operations_pb2.ManageReply:
        learner = self._learners.find(copy or command.learner)
        if learner is None:
            return operations_pb2.ManageReply(message=command.message)
        return operations_pb2.ManageReply(message=command.message, version=learner.version, lineage=learner.lineage.id)

    def profile(self, request: operations_pb2.ProfileRequest, caller: Caller = ANYONE) -> operations_pb2.ProfileReply:
        """Let a client measure what it costs, and read what it has measured."""
        name = request.WhichOneof("command") or "none"
        if name == "read":
            # Not in the audit log: it is asked for every second, and changes nothing.
            with self._begin("Profile"):
                caller.require_role(Role.OPERATOR, "Profile")
                return self._profiles.read(self._profiles.find(request, caller), request.read)
        arguments = {"client": request.client[:128], "command": name, "seconds": request.begin.seconds}
        command = _Command(caller, "profile", request.learner, "", request.operator_name, arguments)
        with self._begin("Profile"), self._audited(command):
            if name == "none":
                raise invalid("The request has no command; order to begin, read or end a profile.")
            client = self._profiles.find(request, caller)
            command.learner = client.learner.name
            if name == "begin":
                command.message = f"The client '{client.client}' is ordered to measure what it costs."
                return self._profiles.begin(client, request.begin)
            command.message = f"The client '{client.client}' no longer has to measure what it costs."
            return self._profiles.end(client, request.end)

    def audit(self, request: operations_pb2.AuditRequest, caller: Caller = ANYONE) -> operations_pb2.AuditReply:
        """The newest entries of the audit log that the caller may see."""
        with self._begin("Audit"):
            caller.require_role(Role.OPERATOR, "Audit")
            most = min(request.most or _USUAL_ENTRIES, _MOST_ENTRIES)
            records = self._log.newest(most, request.learner)
            seen = [record.to_message() for record in records if may_see(caller, record.learner)]
            return operations_pb2.AuditReply(entries=seen)

    def _find(self, name: str, caller: Caller) -> HostedLearner:
        """The learner of this name, if the caller may see it."""
        learner = self._learners.find(name)
        if learner is not None and may_see(caller, name):
            return learner
        seen = [each.name for each in self._learners.all() if may_see(caller, each.name)]
        if (problem := self._learners.problems.get(name)) is not None and may_see(caller, name):
            raise unavailable(f"The learner '{name}' could not be opened: {problem}")
        listed = f"There are: {', '.join(seen[:50])}." if seen else "There is none yet."
        raise CallFailed(
            Code.NOT_FOUND, f"There is no learner '{name[:128]}'{did_you_mean(name[:128], seen) or '.'} {listed}"
        )

    @contextmanager
    def _audited(self, command: _Command) -> Iterator[None]:
        """Require an operator, and write what became of the command to the audit log, whatever that is."""
        try:
            command.caller.require_role(Role.OPERATOR, command.name)
            yield
        except CallFailed as error:
            self._write(command, error.code.value, str(error))
            raise
        except BaseException as error:
            self._write(command, Code.INTERNAL.value, f"{type(error).__name__}: {error}")
            raise
        self._write(command, "OK", command.message)

    def _write(self, command: _Command, result: str, message: str) -> None:
        caller = command.caller
        record = AuditRecord(
            time=self._wall_clock(),
            who=caller.who,
            operator_name=command.operator_name,
            peer=caller.peer,
            role=str(caller.role),
            learner=command.learner,
            command=command.name,
            arguments_json=json.dumps(command.arguments),
            reason=command.reason,
            result=result,
            message=message,
        )
        said = (command.name, command.learner, caller.who, result, message)
        _log.info("Operator command %s on %s by %s: %s. %s", *said, extra={"learner": command.learner})
        try:
            self._log.append(record)
        except OSError as error:
            done = "was carried out" if result == "OK" else "was refused"
            raise unavailable(
                f"The command '{command.name}' {done}, but the audit log cannot be written: {error}. Free space on the "
                f"disk of the server.",
                FailureReason.STORAGE,
            ) from error
