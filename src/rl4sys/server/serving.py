"""A server on a network address, from start to drain."""

from __future__ import annotations

import ipaddress
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from rl4sys.server.grpc_adapter import GrpcAdapter
from rl4sys.server.health import Health
from rl4sys.server.options import DEFAULT_DATA, ImpossibleSetup, ServiceOptions
from rl4sys.server.service import TrainingService
from rl4sys.server.tokens import TokenFile

_log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:50051"
DRAIN_SECONDS = 10.0
_CALL_THREADS = 64
"""For calls that end; those who watch have threads of their own beside them."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server is reached, and by whom."""

    listen: str = DEFAULT_LISTEN
    """HOST:PORT (port 0: any free one), or unix:PATH."""
    data: Path = DEFAULT_DATA
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    """If set, clients must show a certificate of this authority."""
    insecure: bool = False
    """Listen beyond this machine without TLS or tokens, on purpose."""
    service: ServiceOptions = field(default_factory=ServiceOptions)

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None) or (self.tls_client_ca and self.tls_cert is None):
            raise ImpossibleSetup("TLS needs both a certificate and its key: give --tls-cert and --tls-key.")
        is_closed = self.tls_cert is not None and self.token_file is not None
        if not (is_closed or self.insecure or _is_local(self.listen)):
            raise ImpossibleSetup(
                f"{self.listen} can be reached from other machines. Give --tls-cert, --tls-key and --token-file, "
                f"listen on 127.0.0.1, or say --insecure if everybody there may train and read."
            )


class GrpcServer:
    """A service that listens. It takes calls as soon as it is made."""

    def __init__(self, options: ServerOptions) -> None:
        tokens = TokenFile(_existing(options.token_file)) if options.token_file is not None else None
        credentials = _credentials(options)
        self.service = TrainingService(options.data, options.service)
        self._health = Health()
        limits = options.service.limits
        threads = _CALL_THREADS + limits.max_watchers
        self._server = grpc.server(
            ThreadPoolExecutor(threads, thread_name_prefix="call"),
            handlers=[GrpcAdapter(self.service, tokens).handler(), self._health.handler()],
            options=_channel_options(limits.max_message_bytes),
            maximum_concurrent_rpcs=threads,
        )
        try:
            if credentials is None:
                self.port = self._server.add_insecure_port(options.listen)
            else:
                self.port = self._server.add_secure_port(options.listen, credentials)
        except RuntimeError as error:
            self.service.drain()
            raise ImpossibleSetup(
                f"Cannot listen on {options.listen}: {error}. Another server may; choose another --listen."
            ) from error
        self._server.start()

    def drain(self, timeout: float = DRAIN_SECONDS) -> None:
        """Take no more calls, finish those under way, checkpoint all learners."""
        self._health.stop()
        stopped = self._server.stop(grace=timeout / 2)
        self.service.drain(timeout * 0.9)
        stopped.wait(timeout)


def serve(options: ServerOptions, ready: Callable[[GrpcServer], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then drain. `ready` is called once, when calls are taken. For the main thread."""
    asked = threading.Event()
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server = GrpcServer(options)
        _log.info("Serving on %s, port %d, data in %s.", options.listen, server.port, options.data)
        try:
            if ready is not None:
                ready(server)
            asked.wait()
        finally:
            _log.info("Draining.")
            server.drain()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _channel_options(max_message_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        # A dead client is noticed, and living ones may ask as often: the client sets the same.
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        # Two servers on one port would share the clients between them.
        ("grpc.so_reuseport", 0),
    ]


def _credentials(options: ServerOptions) -> grpc.ServerCredentials | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    authority = _existing(options.tls_client_ca).read_bytes() if options.tls_client_ca is not None else None
    pair = (_existing(options.tls_key).read_bytes(), _existing(options.tls_cert).read_bytes())
    return grpc.ssl_server_credentials([pair], authority, require_client_auth=authority is not None)


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ImpossibleSetup(f"{path} does not exist, or is no file.")
    return path


def _is_local(listen: str) -> bool:
    if listen.startswith("unix:"):
        return True
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
