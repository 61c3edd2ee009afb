"""A status as metrics, in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rl4sys.wire.generated import status_pb2

_Status: TypeAlias = status_pb2.LearnerStatus | status_pb2.ClientStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(slots=True)
class Family:
    """Samples of one name. Names of counters end in `_total`."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """One more sample; those of a family differ in their labels."""
        self.samples.append((labels, value))

    def lines(self) -> Iterator[str]:
        """HELP, TYPE and the samples; nothing without samples."""
        if self.samples:
            yield f"# HELP {self.name} {self.help}"
            yield f"# TYPE {self.name} {self.kind}"
        for labels, value in self.samples:
            pairs = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
            yield f"{self.name}{{{pairs}}} {_number(value)}" if pairs else f"{self.name} {_number(value)}"


def exposition(reply: status_pb2.StatusReply) -> str:
    """What a scraper reads."""
    families = [*_server(reply.server), *_learners(reply.learners), *_clients(reply.clients)]
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _server(server: status_pb2.ServerStatus) -> Iterator[Family]:
    info = Family("rl4sys_server_info", "gauge", "What the server is; always 1.")
    info.add(1, software=server.software, durability=server.durability)
    yield info
    states = Family("rl4sys_server_state", "gauge", "Whether the server is in this state.")
    for state, is_it in _each_state(status_pb2.ServerState.items(), server.state):
        states.add(is_it, state=state)
    yield states
    for name, help, value in (
        ("uptime_seconds", "Seconds since the server started.", server.uptime_seconds),
        ("memory_bytes", "Resident memory of the server process without its workers.", server.memory_bytes),
        ("data_bytes", "What the data directory takes.", server.data_bytes),
        ("disk_free_bytes", "What is left on the disk of the data directory.", server.disk_free_bytes),
        ("connected_clients", "Clients that have been heard of within the last minute.", server.connected_clients),
    ):
        yield _one(f"rl4sys_server_{name}", "gauge", help, value)
    yield _one("rl4sys_server_cpu_seconds_total", "counter", "Processor time without workers.", server.cpu_seconds)
    calls = Family("rl4sys_calls_total", "counter", "Calls that ended, by method and status code.")
    for call in server.calls:
        calls.add(call.count, method=call.method, code=call.code)
    yield calls
    failed = Family("rl4sys_failed_calls_total", "counter", "Calls that did not end in OK, with those without a token.")
    for code, count in sorted(server.failed_calls.items()):
        failed.add(count, code=code)
    yield failed


def _learners(learners: Iterable[status_pb2.LearnerStatus]) -> Iterator[Family]:
    each = list(learners)
    info = Family("rl4sys_learner_info", "gauge", "What the learner is; always 1.")
    states = Family("rl4sys_learner_state", "gauge", "Whether the learner is in this state.")
    unused = Family("rl4sys_learner_unused_steps_total", "counter", "Steps that were not learned from, by reason.")
    for learner in each:
        info.add(1, learner=learner.learner, algorithm=learner.algorithm, device=learner.device)
        for state, value in _each_state(status_pb2.LearnerState.items(), learner.state):
            states.add(value, learner=learner.learner, state=state)
        for reason, steps in sorted(learner.unused_steps.items()):
            unused.add(steps, learner=learner.learner, reason=reason)
    yield from (info, states, unused)
    yield from _of_each(
        "gauge",
        "learner",
        {
            "version": "The newest version of the weights.",
            "clients": "Clients that use it.",
            "queued_segments": "Segments that are stored and not yet learned from.",
            "queued_bytes": "Bytes that are stored and not yet learned from.",
            "mean_return": "Mean return of the last episodes.",
            "checkpoint_age_seconds": "Age of the newest checkpoint.",
            "log_bytes": "What the log takes on disk.",
            "memory_bytes": "Resident memory of the worker process.",
        },
        each,
    )
    yield from _of_each(
        "counter",
        "learner",
        {
            "restarts": "Starts of the worker after a failure.",
            "stored_segments": "Segments stored, without repeats.",
            "stored_steps": "Steps stored, without repeats.",
            "stored_bytes": "Bytes of segments stored, without repeats.",
            "learned_steps": "Steps that were learned from.",
            "episodes": "EpisodeReturns that ended.",
            "updates": "Updates of the weights.",
            "cpu_seconds": "Processor time of the worker process.",
        },
        each,
    )


def _clients(clients: Iterable[status_pb2.ClientStatus]) -> Iterator[Family]:
    each = list(clients)
    refused = Family("rl4sys_client_refused_segments_total", "counter", "Segments refused for ever, by reason.")
    for client in each:
        for reason, count in sorted(client.refused_segments.items()):
            refused.add(count, client=client.client, learner=client.learner, reason=reason)
    yield refused
    yield from _of_each(
        "gauge",
        "client",
        {
            "version": "The version that it was last sent.",
            "silent_seconds": "Seconds since it was heard of.",
            "connected": "Whether it was heard of within the last minute.",
        },
        each,
    )
    yield from _of_each(
        "counter",
        "client",
        {
            "stored_segments": "Segments stored, without repeats.",
            "stored_steps": "Steps stored, without repeats.",
            "stored_bytes": "Bytes of segments stored, without repeats.",
            "repeated_segments": "Segments sent again after they had been stored.",
            "delayed_pushes": "Pushes that found no room, or came too fast.",
            "received_bytes": "Bytes of segments pushed.",
        },
        each,
    )


def _of_each(
    kind: Literal["counter", "gauge"], what: str, helps: Mapping[str, str], messages: Sequence[_Status]
) -> Iterator[Family]:
    """A family for each field that is named, with a sample for each message that has it."""
    for source, help in helps.items():
        family = Family(f"rl4sys_{what}_{source}{'_total' if kind == 'counter' else ''}", kind, help)
        for message in messages:
            if _is_known(message, source):
                family.add(getattr(message, source), **_labels(message))
        yield family


def _labels(message: _Status) -> dict[str, str]:
    """Who is meant: a learner, or a client of one."""
    learner = {"learner": message.learner}
    return learner if isinstance(message, status_pb2.LearnerStatus) else {"client": message.client} | learner


def _is_known(message: _Status, source: str) -> bool:
    """False for an optional number that is absent."""
    return not message.DESCRIPTOR.fields_by_name[source].has_presence or message.HasField(source)


def _one(name: str, kind: Literal["counter", "gauge"], help: str, value: float) -> Family:
    return Family(name, kind, help, [({}, value)])


def _each_state(states: Iterable[tuple[str, int]], state: int) -> Iterator[tuple[str, int]]:
    """Every state of an enum of the proto but UNSPECIFIED, without the name of the enum, and whether it is this."""
    for name, number in states:
        if number:
            yield name.partition("_STATE_")[2].lower(), int(number == state)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    return str(int(value)) if float(value).is_integer() else repr(float(value))
