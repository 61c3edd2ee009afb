"""Metrics over HTTP: `/metrics` for Prometheus, `/healthz` for supervisors."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any

from rl4sys.server.options import ImpossibleSetup
from rl4sys.server.transport.metrics import CONTENT_TYPE, exposition
from rl4sys.wire.generated import status_pb2

_log = logging.getLogger(__name__)

_PLAIN = "text/plain; charset=utf-8"
_MOST_AT_ONCE = 8
_PATIENCE_SECONDS = 5.0
_REQUEST_SECONDS = 15.0
"""For a whole request: patience with each read alone would let somebody stay who sends a byte now and then."""


class MetricsServer:
    """Answers in threads of its own until it is closed. It knows no tokens: whoever reaches it may read."""

    def __init__(self, host: str, port: int, status: Callable[[], status_pb2.StatusReply]) -> None:
        class Handler(_Handler):
            look = staticmethod(status)

        try:
            self._server = (_Server6 if ":" in host else _Server)((host, port), Handler)
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


class _Server(ThreadingHTTPServer):
    """Few at once, so that nobody takes all threads by opening connections."""

    daemon_threads = True
    block_on_close = False

    def __init__(
        self, address: tuple[str, int], handler: Callable[[Any, Any, BaseServer], BaseHTTPRequestHandler]
    ) -> None:
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)
        super().__init__(address, handler)

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
        """A reader that went away is no news."""
        _log.debug("A request for metrics broke off.", exc_info=True)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        connection.shutdown(socket.SHUT_RDWR)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    """One request for each connection, from somebody who must not dawdle."""

    look: Callable[[], status_pb2.StatusReply]
    timeout = _PATIENCE_SECONDS

    def do_GET(self) -> None:
        """Answer."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(HTTPStatus.OK, CONTENT_TYPE, exposition(self.look()))
            case "/healthz":
                server = self.look().server
                state = status_pb2.ServerState.Name(server.state).removeprefix("SERVER_STATE_").lower()
                is_well = server.state == status_pb2.SERVER_STATE_SERVING
                code = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
                self._answer(code, _PLAIN, f"{state}\n")
            case _:
                self._answer(HTTPStatus.NOT_FOUND, _PLAIN, "There are /metrics and /healthz.\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Scrapes are no news."""

    def version_string(self) -> str:
        """Nobody needs to know which Python this is."""
        return "rl4sys"

    def _answer(self, code: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
