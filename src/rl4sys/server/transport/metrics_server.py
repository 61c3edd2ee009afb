"""Metrics and probes over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz` for supervisors."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from rl4sys.server.access.caller import ANYONE, Caller
from rl4sys.server.access.tokens import AUTHORIZATION, TokenFile
from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.service.readiness import STARTING, Readiness
from rl4sys.server.transport.certificates import Certificates
from rl4sys.server.transport.metric_names import NameBudget
from rl4sys.server.transport.metrics import StatusCollector
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

_log = logging.getLogger(__name__)

_MAX_REQUESTS = 8
_READ_SECONDS = 5.0
_REQUEST_SECONDS = 15.0
"""For a whole request: a limit for each read alone would not stop a client that sends a byte now and then."""
_PATHS = "There are /metrics, /healthz and /readyz."


class Observed(Protocol):
    """What metrics and probes are about: a training service."""

    def current_status(self, learner: str = "", caller: Caller = ANYONE) -> status_pb2.StatusReply:
        """Its status, as far as a caller may see it."""

    def readiness(self) -> Readiness:
        """Whether it can store experience."""


class MetricsServer:
    """Answers in threads of its own until it is closed, from before the service starts until it has drained.

    With certificates it speaks HTTPS. With a token file `/metrics` needs a token of any role, and shows what that may
    see; probes need none, but then show no names.
    """

    def __init__(
        self,
        host: str,
        port: int,
        names: int,
        certificates: Certificates | None = None,
        tokens: TokenFile | None = None,
    ) -> None:
        """`names` learners, and clients, have metrics of their own; the others are summed."""
        self._tokens = tokens
        self._learner_names, self._client_names = NameBudget(names), NameBudget(names)
        self._observed: Observed | None = None
        self._is_alive: Callable[[], bool] = lambda: True
        kind: type[_Server] = _Server6 if ":" in host else _Server
        try:
            self._server = make_server(host, port, self._answer, kind, _Handler)
        except OSError as error:
            raise ImpossibleSetup(
                f"Metrics cannot be served on {host}, port {port}: {error}. Choose another --metrics-port or "
                f"--metrics-listen."
            ) from error
        self._server.certificates = certificates
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def observe(self, observed: Observed, is_alive: Callable[[], bool] = lambda: True) -> None:
        """Show a service that has started; before that, every probe says `starting`."""
        self._observed, self._is_alive = observed, is_alive

    def close(self) -> None:
        """Take no more requests."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        observed = self._observed
        caller: Caller | None = None
        try:
            caller = self._caller(environ)
        except CallFailed as error:
            if environ["PATH_INFO"] == "/metrics":
                return _reply(start_response, "401 Unauthorized", str(error), ("WWW-Authenticate", "Bearer"))
        match environ["PATH_INFO"]:
            case "/metrics" if observed is not None and caller is not None:
                return self._metrics(observed, caller)(environ, start_response)
            case "/metrics":
                return _reply(start_response, "503 Service Unavailable", STARTING.state)
            case "/healthz":
                is_alive, ready = self._is_alive(), _readiness(observed)
                code = "200 OK" if is_alive else "503 Service Unavailable"
                return _reply(start_response, code, _text(ready, caller) if is_alive else "calls are not answered")
            case "/readyz":
                ready = _readiness(observed)
                return _reply(start_response, _code(ready), _text(ready, caller))
        return _reply(start_response, "404 Not Found", _PATHS)

    def _caller(self, environ: WSGIEnvironment) -> Caller:
        if self._tokens is None:
            return ANYONE
        given = environ.get("HTTP_AUTHORIZATION")
        return self._tokens.authenticate([] if given is None else [(AUTHORIZATION, given)], environ["REMOTE_ADDR"])

    def _metrics(self, observed: Observed, caller: Caller) -> WSGIApplication:
        # A registry of its own: callers may see different parts.
        registry = CollectorRegistry(auto_describe=False)
        registry.register(
            StatusCollector(lambda: observed.current_status(caller=caller), self._learner_names, self._client_names)
        )
        return make_wsgi_app(registry)


def _readiness(observed: Observed | None) -> Readiness:
    return STARTING if observed is None else observed.readiness()


def _code(ready: Readiness) -> str:
    return "200 OK" if ready.is_ready else "503 Service Unavailable"


def _text(ready: Readiness, caller: Caller | None) -> str:
    """The state, and for a caller that may see them, problems; a whole server's are for those who see all of it."""
    if caller is None or "*" not in caller.patterns:
        return ready.state
    return "\n".join([f"{ready.state}: {ready.problem}" if ready.problem else ready.state, *ready.troubled])


def _reply(start_response: StartResponse, code: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start_response(code, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [f"{text}\n".encode()]


class _Server(ThreadingWSGIServer):
    """A bounded number of requests at once, each with a deadline, so that idle connections cannot take all threads."""

    block_on_close = False
    certificates: Certificates | None = None

    def __init__(self, *arguments: Any) -> None:
        self._free = threading.BoundedSemaphore(_MAX_REQUESTS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        if self.certificates is not None:
            context = self.certificates.context()
            request = context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        deadline = threading.Timer(_REQUEST_SECONDS, _cut, (request,))
        deadline.daemon = True
        deadline.start()
        try:
            if isinstance(request, ssl.SSLSocket):
                # Here, in the thread of the request: it waits for the caller.
                request.settimeout(_READ_SECONDS)
                request.do_handshake()
            super().process_request_thread(request, client_address)
        except OSError:
            _log.debug("A caller of metrics did not get through TLS.", exc_info=True)
            self.shutdown_request(request)
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
    with contextlib.suppress(OSError, ssl.SSLError):  # it has ended already
        # Of the socket itself: within TLS it would first say goodbye.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
