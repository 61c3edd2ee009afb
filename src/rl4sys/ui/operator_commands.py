"""Commands about a learner: which the page offers, and carrying one out on the server."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.client.operations_calls import OperationsCalls
from rl4sys.operations.status_tables import message_values
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import operations_pb2, training_pb2

_TIMEOUT = 120.0
"""Some commands wait until a worker has ended."""
_AUDIT_TIMEOUT = 2.0
_MOST_ENTRIES = 20
LONGEST_REASON = 500
_MODES = {
    "off": training_pb2.CONTROL_MODE_OFF,
    "frozen": training_pb2.CONTROL_MODE_FROZEN,
    "follow": training_pb2.CONTROL_MODE_FOLLOW,
}


class WrongCommand(ValueError):
    """A command that is not offered, or not complete."""


class OperatorCommand(NamedTuple):
    """What an operator can do."""

    name: str
    title: str
    effect: str
    is_offered: Callable[[Mapping[str, Any]], bool]
    is_final: bool = False
    """Whether it cannot be taken back; then the name of the learner has to be typed."""


class CommandOutcome(NamedTuple):
    """The result of a command."""

    time: float
    command: str
    reason: str
    message: str
    is_done: bool


def _is_paused(learner: Mapping[str, Any]) -> bool:
    return bool(learner["state"] == "LEARNER_STATE_PAUSED")


COMMANDS = (
    OperatorCommand(
        "off",
        "Clients off",
        "No version of the policy decides anything; every client calls its fallback.",
        lambda learner: learner["control"] != "off",
    ),
    OperatorCommand(
        "frozen",
        "Clients keep their version",
        "Every client keeps the version it has.",
        lambda learner: learner["control"] != "frozen",
    ),
    OperatorCommand(
        "follow",
        "Clients follow again",
        "Every client uses the newest version.",
        lambda learner: learner["control"] in ("off", "frozen"),
    ),
    OperatorCommand(
        "pause",
        "Pause learning",
        "Experience is stored, and learned from later.",
        lambda learner: not _is_paused(learner),
    ),
    OperatorCommand("resume", "Resume learning", "First from what was stored meanwhile.", _is_paused),
    OperatorCommand(
        "freeze",
        "Freeze the weights",
        "Experience that arrives is not learned from, also not later.",
        lambda learner: not learner["frozen"],
    ),
    OperatorCommand(
        "unfreeze", "Unfreeze the weights", "Learn from what arrives from now on.", lambda learner: learner["frozen"]
    ),
    OperatorCommand(
        "restart",
        "Restart the worker",
        "Another worker continues from the last checkpoint and the log.",
        lambda learner: True,
    ),
    OperatorCommand(
        "accept",
        "Accept this lineage",
        "Clients that hold another lineage replace their policies.",
        lambda learner: bool(learner["other_lineages"]),
        is_final=True,
    ),
    OperatorCommand(
        "reset",
        "Start over",
        "Initial weights and an empty log; the files of the old learner are moved aside.",
        lambda learner: True,
        is_final=True,
    ),
)


def offered(learner: Mapping[str, Any]) -> list[OperatorCommand]:
    """The commands that make sense now."""
    return [command for command in COMMANDS if command.is_offered(learner)]


def checked_command(fields: Mapping[str, str]) -> OperatorCommand:
    """The command of a form; raises `WrongCommand` unless it is complete."""
    wanted = fields.get("command", "")
    command = next((each for each in COMMANDS if each.name == wanted), None)
    if command is None:
        raise WrongCommand(f"There is no command '{wanted}'; there are: {', '.join(each.name for each in COMMANDS)}.")
    if not fields.get("reason", "").strip():
        raise WrongCommand("A reason is needed: clients and the audit log show it. Nothing was done.")
    if command.is_final and fields.get("confirmation", "") != fields.get("learner", ""):
        raise WrongCommand(f"To {command.name}, type the name of the learner. Nothing was done.")
    return command


def carry_out(transport: GrpcTransport, learner: str, command: OperatorCommand, reason: str) -> str:
    """Send a command, and say what it did; raises `CallFailed`."""
    calls, operator = OperationsCalls(transport), f"{getpass.getuser()}@{socket.gethostname()} (page)"
    reason = reason.strip()[:LONGEST_REASON]
    if mode := _MODES.get(command.name):
        order = operations_pb2.ControlRequest(learner=learner, mode=mode, reason=reason, operator_name=operator)
        reply = calls.control(order, _TIMEOUT)
        return f"The clients of {learner} are ordered: {command.name} (sent to {reply.watching_clients} streams)."
    request = operations_pb2.ManageRequest(learner=learner, reason=reason, operator_name=operator)
    getattr(request, command.name).SetInParent()
    return calls.manage(request, _TIMEOUT).message


def audit_entries(transport: GrpcTransport, learner: str) -> list[Mapping[str, Any]] | str:
    """The newest commands about a learner, newest first; a sentence if the server does not tell."""
    try:
        request = operations_pb2.AuditRequest(learner=learner, most=_MOST_ENTRIES)
        reply = OperationsCalls(transport).audit(request, _AUDIT_TIMEOUT)
    except CallFailed as error:
        return f"The server does not show its audit log: {error} ({error.code})"
    return [message_values(entry) for entry in reversed(reply.entries)]
