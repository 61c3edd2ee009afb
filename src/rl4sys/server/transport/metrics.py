"""Metrics over HTTP: `/metrics` for Prometheus, `/healthz` for supervisors."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.registry import Collector

from rl4sys.server.options import ImpossibleSetup
from rl4sys.wire.generated import status_pb2

_log = logging.getLogger(__name__)

_Message: TypeAlias = status_pb2.ServerStatus | status_pb2.LearnerStatus | status_pb2.ClientStatus
_Family: TypeAlias = type[GaugeMetricFamily] | type[CounterMetricFamily]

_MAX_REQUESTS = 8
_READ_SECONDS = 5.0
_REQUEST_SECONDS = 15.0
"""For a whole request: a limit for each read alone would not stop a client that sends a byte now and then."""

_SERVER_GAUGES = {
    "uptime_seconds": "Seconds since the server started.",
    "memory_bytes": "Resident memory of the server process without its workers.",
    "data_bytes": "Size of the data directory.",
    "disk_free_bytes": "Free space on the disk of the data directory.",
    "connected_clients": "Clients that called within the last minute.",
}
_SERVER_COUNTERS = {"cpu_seconds": "Processor time without workers."}
_LEARNER_GAUGES = {
    "version": "The newest version of the weights.",
    "clients": "Clients that use it.",
    "queued_segments": "Segments that are stored and not yet learned from.",
    "queued_bytes": "Bytes that are stored and not yet learned from.",
    "mean_return": "Mean return of the last episodes.",
    "checkpoint_age_seconds": "Age of the newest checkpoint.",
    "log_bytes": "Size of the log on disk.",
    "memory_bytes": "Resident memory of the worker process.",
}
_LEARNER_COUNTERS = {
    "restarts": "Starts of the worker after a failure.",
    "stored_segments": "Segments stored, without repeats.",
    "stored_steps": "Steps stored, without repeats.",
    "stored_bytes": "Bytes of segments stored, without repeats.",
    "learned_steps": "Steps that were learned from.",
    "episodes": "Episodes that ended.",
    "updates": "Updates of the weights.",
    "cpu_seconds": "Processor time of the worker process.",
}
_CLIENT_GAUGES = {
    "version": "The version that it was last sent.",
    "silent_seconds": "Seconds since its last call.",
    "connected": "Whether it called within the last minute.",
}
_CLIENT_COUNTERS = {
    "stored_segments": "Segments stored, without repeats.",
    "stored_steps": "Steps stored, without repeats.",
    "stored_bytes": "Bytes of segments stored, without repeats.",
    "repeated_segments": "Segments sent again after they had been stored.",
    "delayed_pushes": "Pushes that were refused for the moment: the inbox was full, or they came too fast.",
    "received_bytes": "Bytes of segments pushed.",
}


class StatusCollector(Collector):
    """The status of a server as metric families, read afresh for each scrape."""

    def __init__(self, status: Callable[[], status_pb2.StatusReply]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        """All families of one scrape."""
        reply = self._status()
        yield from _server(reply.server)
        yield from _learners(list(reply.learners))
        yield from _clients(list(reply.clients))


def _server(server: status_pb2.ServerStatus) -> Iterator[Metric]:
    info = GaugeMetricFamily("rl4sys_server_info", "What the server is; always 1.", labels=["software", "durability"])
    info.add_metric([server.software, server.durability], 1)
    state = GaugeMetricFamily("rl4sys_server_state", "Whether the server is in this state.", labels=["state"])
    _add_states(state, [], status_pb2.ServerState.items(), server.state)
    calls = CounterMetricFamily(
        "rl4sys_calls", "Calls that ended, by method and status code.", labels=["method", "code"]
    )
    for call in server.calls:
        calls.add_metric([call.method, call.code], call.count)
    failed = CounterMetricFamily(
        "rl4sys_failed_calls", "Calls that did not end in OK, including those without a token.", labels=["code"]
    )
    for code, count in sorted(server.failed_calls.items()):
        failed.add_metric([code], count)
    yield from (info, state, calls, failed)
    yield from _of_each(GaugeMetricFamily, "server", _SERVER_GAUGES, [], [server])
    yield from _of_each(CounterMetricFamily, "server", _SERVER_COUNTERS, [], [server])


def _learners(learners: list[status_pb2.LearnerStatus]) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "rl4sys_learner_info", "What the learner is; always 1.", labels=["learner", "algorithm", "device"]
    )
    state = GaugeMetricFamily(
        "rl4sys_learner_state", "Whether the learner is in this state.", labels=["learner", "state"]
    )
    unused = CounterMetricFamily(
        "rl4sys_learner_unused_steps", "Steps that were not learned from, by reason.", labels=["learner", "reason"]
    )
    for learner in learners:
        info.add_metric([learner.learner, learner.algorithm, learner.device], 1)
        _add_states(state, [learner.learner], status_pb2.LearnerState.items(), learner.state)
        for reason, steps in sorted(learner.unused_steps.items()):
            unused.add_metric([learner.learner, reason], steps)
    yield from (info, state, unused)
    yield from _of_each(GaugeMetricFamily, "learner", _LEARNER_GAUGES, ["learner"], learners)
    yield from _of_each(CounterMetricFamily, "learner", _LEARNER_COUNTERS, ["learner"], learners)


def _clients(clients: list[status_pb2.ClientStatus]) -> Iterator[Metric]:
    labels = ["client", "learner"]
    refused = CounterMetricFamily(
        "rl4sys_client_refused_segments", "Segments refused permanently, by reason.", labels=[*labels, "reason"]
    )
    for client in clients:
        for reason, count in sorted(client.refused_segments.items()):
            refused.add_metric([client.client, client.learner, reason], count)
    yield refused
    yield from _of_each(GaugeMetricFamily, "client", _CLIENT_GAUGES, labels, clients)
    yield from _of_each(CounterMetricFamily, "client", _CLIENT_COUNTERS, labels, clients)


def _of_each(
    family: _Family, prefix: str, helps: Mapping[str, str], labels: list[str], messages: Iterable[_Message]
) -> Iterator[Metric]:
    """A family for each named field, with a sample for each message that has it; labels are fields as well."""
    rows = [(message, [str(getattr(message, label)) for label in labels]) for message in messages]
    for field, help in helps.items():
        metric = family(f"rl4sys_{prefix}_{field}", help, labels=labels)
        for message, values in rows:
            if not message.DESCRIPTOR.fields_by_name[field].has_presence or message.HasField(field):
                metric.add_metric(values, getattr(message, field))
        yield metric


def _add_states(family: GaugeMetricFamily, labels: list[str], states: Iterable[tuple[str, int]], state: int) -> None:
    """One sample for each state of a proto enum except UNSPECIFIED: 1 for the present one, 0 for the others."""
    for name, number in states:
        if number:
            family.add_metric([*labels, name.partition("_STATE_")[2].lower()], int(number == state))


class MetricsServer:
    """Answers in threads of its own until it is closed. It knows no tokens: every caller may read."""

    def __init__(self, host: str, port: int, status: Callable[[], status_pb2.StatusReply]) -> None:
        try:
            self._server = make_server(host, port, _app(status), _Server6 if ":" in host else _Server, _Handler)
        except OSError as error:
            raise ImpossibleSetup(
                f"Metrics cannot be served on {host}, port {port}: {error}. Choose another --metrics-port."
            ) from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _app(status: Callable[[], status_pb2.StatusReply]) -> WSGIApplication:
    registry = CollectorRegistry()
    registry.register(StatusCollector(status))
    metrics = make_wsgi_app(registry)

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                chunks: Iterable[bytes] = metrics(environ, start_response)
                return chunks
            case "/healthz":
                state = status().server.state
                code = "200 OK" if state == status_pb2.SERVER_STATE_SERVING else "503 Service Unavailable"
                text = status_pb2.ServerState.Name(state).removeprefix("SERVER_STATE_").lower()
            case _:
                code, text = "404 Not Found", "There are /metrics and /healthz."
        start_response(code, [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{text}\n".encode()]

    return answer


class _Server(ThreadingWSGIServer):
    """A bounded number of requests at once, each with a deadline, so that idle connections cannot take all threads."""

    block_on_close = False

    def __init__(self, *arguments: Any) -> None:
        self._free = threading.BoundedSemaphore(_MAX_REQUESTS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        deadline = threading.Timer(_REQUEST_SECONDS, _cut, (request,))
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("A request for metrics broke off.", exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = _READ_SECONDS

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: scrapes are no news."""


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)
