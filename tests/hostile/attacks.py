"""An attacker's view of the server: its handlers, called with bytes, as gRPC calls them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from google.protobuf.message import Message
from tests.hostile.mutations import mutated
from tests.server.clients import PPO, ScriptedClient, join_request

from rl4sys.server import InProcessTransport, TrainingService
from rl4sys.server.service.watch import VersionWatch
from rl4sys.wire import ContractViolation, Question, encode_question, parse
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2, training_pb2

RPCS = ("Join", "Push", "Pull", "Watch", "Act", "Report", "Status")
_ANYWHERE = {
    "UNAVAILABLE",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "INVALID_ARGUMENT",
    "FAILED_PRECONDITION",
    "RESOURCE_EXHAUSTED",
}
DECLARED = {rpc: _ANYWHERE | ({"NOT_FOUND"} if rpc in ("Join", "Pull", "Status") else set()) for rpc in RPCS}
"""The codes by which training.proto lets a call fail; INTERNAL would be a fault, DEADLINE_EXCEEDED a hang."""
SLOW_LEARNER = (PPO[0], PPO[1] | {"buffer": {"size": 1_000_000}})
"""Never has enough for an update, so that it accepts everything an attacker sends."""


class Aborted(Exception):
    """A call ended with a code other than OK."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self.code, self.details = code, details


class Handlers:
    """Calls by name and bytes, parsed within the server's limits and without a socket."""

    def __init__(self, service: TrainingService) -> None:
        self._service = service
        limits = service.options.limits
        push = {"most_bytes": limits.max_message_bytes, "most_fields": 2 * limits.max_push_segments + 16}
        self._requests: dict[str, tuple[type[Message], dict[str, int]]] = {
            "Join": (training_pb2.JoinRequest, {}),
            "Push": (training_pb2.PushRequest, push),
            "Pull": (training_pb2.PullRequest, {}),
            "Watch": (training_pb2.WatchRequest, {}),
            "Act": (training_pb2.ActRequest, {"most_bytes": limits.max_message_bytes}),
            "Report": (training_pb2.ReportRequest, {}),
            "Status": (status_pb2.StatusRequest, {}),
        }

    def call(self, rpc: str, data: bytes) -> list[Message]:
        """The reply, or `Aborted`. Of a watch, the first message if there is one; any other exception is a bug."""
        kind, limits = self._requests[rpc]
        try:
            request = parse(kind, data, **limits)
            answer = getattr(self._service, rpc.lower())(request)
            if rpc == "Watch":
                return _first_news(answer, request)
            return list(answer) if rpc == "Pull" else [answer]
        except ContractViolation as error:
            raise _aborted("INVALID_ARGUMENT", error) from error
        except CallFailed as error:
            raise _aborted(error.code.value, error) from error


def _first_news(watching: VersionWatch, request: Any) -> list[Message]:
    if would_wait(request):
        watching.cancel()
    news = iter(watching)
    try:
        return [first for _, first in zip(range(1), news, strict=False)]
    finally:
        news.close()  # type: ignore[attr-defined]  # a generator


def would_wait(request: training_pb2.WatchRequest) -> bool:
    """Whether it watches for versions that an idle learner will never publish."""
    return request.HasField("have") and request.have >= 0


def _aborted(code: str, error: Exception) -> Aborted:
    # As gRPC does; text that cannot be encoded would end the call as UNKNOWN.
    str(error).encode()
    return Aborted(code, str(error))


class Attacker:
    """Joins like any client, and then sends damaged copies of valid messages."""

    def __init__(self, service: TrainingService, name: str = "attacker") -> None:
        self._service = service
        self._client = ScriptedClient(InProcessTransport(service), join_request(name, SLOW_LEARNER))
        self._segments = [self._client.encoded(n, steps=2) for n in range(8)]
        self._corpora = {rpc: [self._valid(rpc, n) for n in range(8)] for rpc in RPCS}
        self._handlers = Handlers(service)

    def attack(self, rpc: str, index: int) -> str:
        """Send the damaged message of this number; returns its code. Anything undeclared raises."""
        data = self.damaged(rpc, index)
        try:
            self._handlers.call(rpc, data)
        except Aborted as aborted:
            if aborted.code not in DECLARED[rpc]:
                raise AssertionError(f"{rpc}, mutation {index}: {aborted}: {data.hex()}") from aborted
            return aborted.code
        except Exception as error:
            raise AssertionError(f"{rpc}, mutation {index}: {data.hex()}") from error
        return "OK"

    def damaged(self, rpc: str, index: int) -> bytes:
        """The damaged message of this number, always the same but for the session in it."""
        return mutated(self._valid(rpc, index), self._corpora[rpc], random.Random(index))

    def _valid(self, rpc: str, index: int) -> bytes:
        session, schema = self._client.joined.session, self._client.joined.schema_hash
        match rpc:
            case "Join":
                name, method = (("attacker", SLOW_LEARNER), ("guest", PPO), ("other", None))[index % 3]
                return join_request(name, method, policy_id="fleet" if index % 5 == 0 else "").SerializeToString()
            case "Push":
                pushed = [
                    training_pb2.PushedSegment(sequence=n, segment=self._segments[(index + n) % 8]) for n in range(2)
                ]
                return training_pb2.PushRequest(
                    session=session, epoch=index, schema_hash=schema, segments=pushed
                ).SerializeToString()
            case "Pull":
                have, want = (None, 0, 1, 7)[index % 4], (None, None, 0, 3)[index // 4 % 4]
                return training_pb2.PullRequest(session=session, have=have, want=want).SerializeToString()
            case "Watch":
                have = (None, None, 0, 9)[index % 4]
                return training_pb2.WatchRequest(
                    session=session, have=have, max_patch_bytes=1 << 20
                ).SerializeToString()
            case "Act":
                rows = 1 + index % 3
                seen = {"queue": np.full((rows, 3), index % 7, np.float32)}
                return encode_question(
                    self._client.form, Question("agent", index % 4, index, seen, None, rows), session
                ).SerializeToString()
            case "Report":
                report = status_pb2.ClientReport(version=index, drops={"queue": index}, decision_time=[index, 2])
                return training_pb2.ReportRequest(session=session, epoch=index, report=report).SerializeToString()
        return status_pb2.StatusRequest(learner="attacker" if index % 2 else "").SerializeToString()
