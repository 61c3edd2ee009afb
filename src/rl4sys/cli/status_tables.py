"""The status of a server as plain values, lines and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from google.protobuf.message import Message

_UNITS = ("B", "kB", "MB", "GB", "TB")


class StatusColumns(NamedTuple):
    """A table: the names of its columns, and its rows."""

    names: tuple[str, ...]
    rows: list[list[str]]


def message_values(message: Message) -> dict[str, Any]:
    """A message as a dictionary: enums by name, numbers as numbers, without absent fields."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.enum_type is not None:
            found[field.name] = field.enum_type.values_by_number[value].name
        elif isinstance(value, Mapping):
            found[field.name] = dict(sorted(value.items()))
        elif field.message_type is None:
            found[field.name] = list(value) if _is_list(value) else value
        elif _is_list(value):
            found[field.name] = [message_values(each) for each in value]
        else:
            found[field.name] = message_values(value)
    return found


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def summary(status: Mapping[str, Any]) -> list[str]:
    """Lines about the server as a whole."""
    server = status["server"]
    problem = f": {server['problem']}" if server["problem"] else ""
    lines = [
        f"{server['software']}, {_state(server)}{problem}, up {_seconds(server['uptime_seconds'])}",
        f"{server['connected_clients']} connected clients; cpu {server['cpu']:.0%}, memory "
        f"{_bytes(server['memory_bytes'])}; data {_bytes(server['data_bytes'])}, "
        f"{_bytes(server['disk_free_bytes'])} free",
    ]
    if server["failed_calls"]:
        lines.append(f"failed calls: {_counts(server['failed_calls'])}")
    if server["unlisted_clients"]:
        lines.append(f"{server['unlisted_clients']} more clients are not listed")
    return lines


def learners(status: Mapping[str, Any]) -> StatusColumns:
    """A row for each learner."""
    names = (
        *("learner", "algorithm", "on", "state", "version", "clients", "queued", "segments/s", "steps", "unused"),
        *("episodes", "return", "cpu", "memory", "saved", "restarts", "problem"),
    )
    return StatusColumns(names, [_learner(each) for each in status["learners"]])


def clients(status: Mapping[str, Any]) -> StatusColumns:
    """A row for each client."""
    names = (
        *("client", "learner", "version", "segments/s", "stored segments", "stored steps", "repeated", "refused"),
        *("delayed", "silent"),
    )
    return StatusColumns(names, [_client(each) for each in status["clients"]])


def _learner(learner: Mapping[str, Any]) -> list[str]:
    return [
        learner["learner"],
        learner["algorithm"],
        learner["device"] or "–",
        _state(learner),
        str(learner["version"]),
        str(learner["clients"]),
        str(learner["queued_segments"]),
        f"{learner['segments_per_second']:.1f}",
        str(learner["learned_steps"]),
        _counts(learner["unused_steps"]),
        str(learner["episodes"]),
        f"{learner['mean_return']:.1f}" if "mean_return" in learner else "–",
        f"{learner['cpu']:.0%}",
        _bytes(learner["memory_bytes"]) if learner["memory_bytes"] else "–",
        f"{_seconds(learner['checkpoint_age_seconds'])} ago" if "checkpoint_age_seconds" in learner else "–",
        str(learner["restarts"]),
        learner["problem"],
    ]


def _client(client: Mapping[str, Any]) -> list[str]:
    return [
        client["client"],
        client["learner"],
        str(client.get("version", "–")),
        f"{client['segments_per_second']:.1f}",
        str(client["stored_segments"]),
        str(client["stored_steps"]),
        str(client["repeated_segments"]),
        _counts(client["refused_segments"]),
        str(client["delayed_pushes"]),
        _seconds(client["silent_seconds"]),
    ]


def _state(part: Mapping[str, Any]) -> str:
    return str(part["state"]).partition("_STATE_")[2].lower()


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.lower()}" for name, count in counts.items()) or "0"


def _bytes(number: float) -> str:
    for unit in _UNITS:
        if number < 1_000 or unit == _UNITS[-1]:
            break
        number /= 1_000
    return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"
