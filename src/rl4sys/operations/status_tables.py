"""The status of a server as plain values, lines and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rl4sys.operations.status_findings import findings, verdict

if TYPE_CHECKING:
    from google.protobuf.message import Message

_MOST_BUCKETS = 24
"""Buckets of a histogram of decision times; the last one has no upper end."""
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


def with_findings(status: Mapping[str, Any]) -> dict[str, Any]:
    """A status with what it means: `verdict`, `problems` and `notes`."""
    found = findings(status)
    return {
        "verdict": verdict(status, found),
        "problems": [each.to_dict() for each in found if each.is_problem],
        "notes": [each.to_dict() for each in found if not each.is_problem],
        **status,
    }


def problem_lines(status: Mapping[str, Any]) -> list[str]:
    """`well`, or what is wrong: a line for each problem."""
    found = findings(status)
    return [verdict(status, found), *(f"  ! {each}" for each in found if each.is_problem)]


def summary(status: Mapping[str, Any]) -> list[str]:
    """Lines about the server as a whole, what is wrong first."""
    server, found = status["server"], findings(status)
    problem = f": {server['problem']}" if server["problem"] else ""
    lines = [
        verdict(status, found),
        *(f"  {'!' if each.is_problem else '-'} {each}" for each in found),
        f"{server['software']}, {_state(server)}{problem}, up {shown_seconds(server['uptime_seconds'])}",
        f"{server['connected_clients']} connected clients; cpu {server['cpu']:.0%}, memory "
        f"{shown_bytes(server['memory_bytes'])}; data {shown_bytes(server['data_bytes'])}, "
        f"{shown_bytes(server['disk_free_bytes'])} free",
    ]
    if server["failed_calls"]:
        lines.append(f"failed calls: {shown_counts(server['failed_calls'])}")
    if server["unlisted_clients"]:
        lines.append(f"{server['unlisted_clients']} more clients are not listed")
    return lines


def learners(status: Mapping[str, Any]) -> StatusColumns:
    """A row for each learner, those with problems first."""
    names = (
        *("learner", "algorithm", "on", "state", "version", "clients", "queued", "segments/s", "steps", "unused"),
        *("share", "episodes", "return", "cpu", "memory", "saved", "restarts", "problem"),
    )
    return StatusColumns(names, [_learner(each) for each in by_severity(status, "learner")])


def clients(status: Mapping[str, Any]) -> StatusColumns:
    """A row for each client, those with problems first."""
    names = (
        *("client", "learner", "version", "acts", "decisions", "p50", "p99", "fallback", "bad", "backlog", "dropped"),
        *("segments/s", "stored segments", "stored steps", "repeated", "refused", "delayed", "silent", "warning"),
    )
    return StatusColumns(names, [_client(each) for each in by_severity(status, "client")])


def decision_time(buckets: Sequence[int], share: float) -> str:
    """A time below which this share of decisions stayed, from a histogram whose bucket i ends at 2^i microseconds."""
    total = sum(buckets)
    if not total:
        return "–"
    seen = 0
    for bucket, count in enumerate(buckets[:-1] if len(buckets) == _MOST_BUCKETS else buckets):
        seen += count
        if seen >= share * total:
            return f"<{_microseconds(2**bucket)}"
    return f"≥{_microseconds(2 ** (len(buckets) - 2))}"


def _microseconds(number: int) -> str:
    if number < 1_000:
        return f"{number} µs"
    return f"{number / 1e3:.3g} ms" if number < 1_000_000 else f"{number / 1e6:.3g} s"


def by_severity(status: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """The learners or clients: those with problems, then those with notes, then the others, each by name."""
    found = findings(status)
    ranks = {finding.about: 1 for finding in found} | {finding.about: 0 for finding in found if finding.is_problem}
    return sorted(status[f"{kind}s"], key=lambda each: (ranks.get(f"{kind} {each[kind]}", 2), each[kind]))


def _learner(learner: Mapping[str, Any]) -> list[str]:
    return [
        learner["learner"],
        learner["algorithm"],
        learner["device"] or "–",
        learner_state(learner),
        str(learner["version"]),
        str(learner["clients"]),
        str(learner["queued_segments"]),
        f"{learner['segments_per_second']:.1f}",
        str(learner["learned_steps"]),
        shown_counts(learner["unused_steps"]),
        f"{learner['record_share'] or 1.0:.0%}",
        str(learner["episodes"]),
        f"{learner['mean_return']:.1f}" if "mean_return" in learner else "–",
        f"{learner['cpu']:.0%}",
        shown_bytes(learner["memory_bytes"]) if learner["memory_bytes"] else "–",
        f"{shown_seconds(learner['checkpoint_age_seconds'])} ago" if "checkpoint_age_seconds" in learner else "–",
        str(learner["restarts"]),
        learner["problem"],
    ]


def learner_state(learner: Mapping[str, Any]) -> str:
    """The state with what changes it: `waiting, frozen, clients off`, `starting, 12 of 741 refolded`."""
    state = _state(learner)
    words = [state.upper() if state in ("failed", "held") else state]
    if learner["frozen"]:
        words.append("frozen")
    if learner["control"] in ("off", "frozen"):
        words.append(f"clients {learner['control']}")
    if "refolded_version" in learner:
        words.append(f"{learner['refolded_version']} of {learner['version']} refolded")
    return ", ".join(words)


def _client(client: Mapping[str, Any]) -> list[str]:
    return [
        client["client"],
        client["learner"],
        *_reported(client),
        f"{client['segments_per_second']:.1f}",
        str(client["stored_segments"]),
        str(client["stored_steps"]),
        str(client["repeated_segments"]),
        shown_counts(client["refused_segments"]),
        str(client["delayed_pushes"]),
        shown_seconds(client["silent_seconds"]),
        client["warning"],
    ]


def _reported(client: Mapping[str, Any]) -> list[str]:
    """Version, how it acts, decisions, their times, fallback, bad inputs, backlog and drops, as the client reports."""
    report = client.get("report")
    if report is None:
        return [str(client.get("version", "–")), *["–"] * 8]
    return [
        str(report.get("version", "–")),
        f"off: {report['off']}" if report["off"] else report["mode"] or "explore",
        str(report["decisions"]),
        decision_time(report["decision_time"], 0.5),
        decision_time(report["decision_time"], 0.99),
        str(report["fallback_decisions"]),
        str(report["bad_inputs"]),
        shown_bytes(report["backlog_bytes"]),
        shown_counts(report["drops"]),
    ]


def _state(part: Mapping[str, Any]) -> str:
    return str(part["state"]).partition("_STATE_")[2].lower()


def shown_counts(counts: Mapping[str, int]) -> str:
    """Counters with their names: `3 outbox_full, 1 late`."""
    return ", ".join(f"{count} {name.lower()}" for name, count in counts.items()) or "0"


def shown_bytes(number: float) -> str:
    """A size with a unit."""
    for unit in _UNITS:
        if number < 1_000 or unit == _UNITS[-1]:
            break
        number /= 1_000
    return f"{number:.0f} {unit}" if number >= 10 or unit == "B" else f"{number:.1f} {unit}"


def shown_seconds(seconds: float) -> str:
    """A duration with a unit."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.0f} h"
