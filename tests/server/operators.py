"""A minimal operator: gives orders and commands within the process of the server."""

from __future__ import annotations

import hashlib
from typing import Any

from rl4sys.server import InProcessTransport
from rl4sys.server.access.caller import ANYONE, Caller
from rl4sys.wire.generated import operations_pb2


class Operator:
    def __init__(self, transport: InProcessTransport, caller: Caller = ANYONE) -> None:
        self.service, self.caller = transport._service.operations, caller

    def control(self, learner: str, mode: Any, reason: str = "") -> operations_pb2.ControlReply:
        request = operations_pb2.ControlRequest(learner=learner, mode=mode, reason=reason, operator_name="tester")
        return self.service.control(request, self.caller)

    def manage(self, learner: str, command: str, **arguments: Any) -> operations_pb2.ManageReply:
        request = operations_pb2.ManageRequest(learner=learner, reason="test", operator_name="tester")
        getattr(request, command).SetInParent()
        for name, value in arguments.items():
            if isinstance(value, dict):
                getattr(getattr(request, command), name).update(value)
            else:
                setattr(getattr(request, command), name, value)
        return self.service.manage(request, self.caller)

    def audit(self, learner: str = "") -> list[operations_pb2.AuditEntry]:
        return list(self.service.audit(operations_pb2.AuditRequest(learner=learner), self.caller).entries)

    def export(self, learner: str) -> bytes:
        return self.service.export(operations_pb2.ExportRequest(learner=learner), self.caller)

    def install(self, learner: str, data: bytes, kind: str = "POLICY") -> operations_pb2.ManageReply:
        request = operations_pb2.InstallRequest(
            learner=learner, kind=f"INSTALLED_KIND_{kind}", source="a test", sha256=hashlib.sha256(data).digest()
        )
        return self.service.install(request, data, self.caller)
