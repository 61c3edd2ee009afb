"""The gRPC server: it listens on an address, from start to drain, and reads its files again."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import grpc.aio

from rl4sys.config import ConfigError
from rl4sys.server.learners.learner_budget import raise_descriptor_limit
from rl4sys.server.options import DEFAULT_DATA, ImpossibleSetup, ServiceOptions
from rl4sys.server.reload import fixed_changes
from rl4sys.server.service.training_service import TrainingService
from rl4sys.server.transport.access_files import AccessFiles
from rl4sys.server.transport.addresses import is_local, listen_problem, require_address, require_available
from rl4sys.server.transport.grpc_servicer import TrainingServicer
from rl4sys.server.transport.operations_servicer import OperationsServicer

if TYPE_CHECKING:
    from rl4sys.server.transport.health import HealthService

_log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:50051"
DEFAULT_METRICS_NAMES = 200
DRAIN_SECONDS = 10.0
_HEALTH_SECONDS = 1.0
"""How often the health service looks whether the server is ready."""
_RESPONSE_SECONDS = 2.0
_CALL_THREADS = 16
"""Threads for Join and Status; Push and Watch need none, and Act has one for each learner."""
_PACKERS = 4
"""Threads that make patches, which takes a while for a large model."""
_CALLS = 1_024
"""Concurrent calls besides watches; more are refused with RESOURCE_EXHAUSTED."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where a server listens, and who may connect."""

    listen: str = DEFAULT_LISTEN
    """HOST:PORT (port 0: any free one), or unix:PATH."""
    data: Path = DEFAULT_DATA
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    """If set, clients must present a certificate of this authority."""
    insecure: bool = False
    """Accept connections from other machines without TLS or tokens, on purpose."""
    service: ServiceOptions = field(default_factory=ServiceOptions)
    metrics_port: int | None = None
    """The port of metrics over HTTP, for this machine only unless `insecure` (0: any free port)."""
    metrics_listen: str | None = None
    """HOST:PORT of metrics instead: over TLS and with a token, unless only this machine can connect."""
    metrics_names: int = DEFAULT_METRICS_NAMES
    """Learners, and clients, that have metrics of their own; the others are summed."""

    def __post_init__(self) -> None:
        require_address(self.listen)
        if (self.tls_cert is None) != (self.tls_key is None) or (self.tls_client_ca and self.tls_cert is None):
            raise ImpossibleSetup("TLS needs both a certificate and its key: give --tls-cert and --tls-key.")
        is_closed = self.tls_cert is not None and self.token_file is not None
        if not (is_closed or self.insecure or is_local(self.listen)):
            raise ImpossibleSetup(
                f"{self.listen} can be reached from other machines. Give --tls-cert, --tls-key and --token-file, "
                f"listen on 127.0.0.1, or give --insecure if every client in that network may train and read."
            )
        if self.metrics_listen is not None:
            self._require_metrics(is_closed=is_closed)

    def _require_metrics(self, *, is_closed: bool) -> None:
        listen = self.metrics_listen or ""
        if self.metrics_port is not None:
            raise ImpossibleSetup("There are two addresses of metrics: give --metrics-listen or --metrics-port.")
        require_address(listen, "metrics_listen")
        if not (is_closed or self.insecure or is_local(listen)):
            raise ImpossibleSetup(
                f"Metrics on {listen} can be read from other machines. Give --tls-cert, --tls-key and --token-file, "
                f"listen on 127.0.0.1, or give --insecure."
            )


class GrpcServer:
    """A service that takes gRPC calls once it is created, in an event loop in a thread of its own."""

    def __init__(self, options: ServerOptions, files: AccessFiles | None = None) -> None:
        """`files` are those of the options, if they are open already."""
        self._options = options
        self._files = files or open_files(options)
        require_available(options.listen)
        self._health = _health()
        self._was_ready = True
        raise_descriptor_limit()
        self.service = TrainingService(options.data, options.service, warnings=self._files.warnings)
        self._threads = ThreadPoolExecutor(_CALL_THREADS, thread_name_prefix="call")
        self._packers = ThreadPoolExecutor(_PACKERS, thread_name_prefix="packer")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="calls", daemon=True)
        self._thread.start()
        try:
            self.port = self._run(self._start(options))
        except RuntimeError as error:
            self._close_loop()
            self.service.drain()
            raise ImpossibleSetup(f"Cannot listen on {options.listen}: {listen_problem(options.listen)}") from error

    def drain(self, timeout: float = DRAIN_SECONDS) -> None:
        """Refuse new calls with UNAVAILABLE, finish those under way, checkpoint all learners, then close the port."""
        # Not waited for: a health watcher that does not read could hold it up.
        asyncio.run_coroutine_threadsafe(self._health.enter_graceful_shutdown(), self._loop)
        self.service.drain(timeout * 0.9)
        try:
            self._run(self._server.stop(grace=timeout * 0.1))
        finally:
            self._close_loop()

    def is_responsive(self, seconds: float = _RESPONSE_SECONDS) -> bool:
        """Whether the event loop that takes calls answers in time."""
        answered = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
        try:
            answered.result(seconds)
        except (TimeoutError, CancelledError):
            answered.cancel()
            return False
        return True

    def reload(self, read: Callable[[], ServerOptions] | None) -> None:
        """Read files again, and options if they come from a file; what cannot be used is kept as it was, and logged."""
        self._files.reload()
        warnings = self.service.warnings
        if read is None:
            _log.info("Token file and certificates were read again. There is no config file to read.")
            return
        try:
            options = read()
            changes = self.service.reload(options.service)
        except (ConfigError, ImpossibleSetup, OSError) as error:
            warnings.set("config", f"The config was not reloaded: {error} The server continues as before.")
            return
        warnings.clear("config")
        _log.info("The config was reloaded; changed: %s.", ", ".join(changes.applied) or "nothing")
        if needs_restart := fixed_changes(self._options, options) + changes.needs_restart:
            names = ", ".join(needs_restart)
            warnings.set("restart", f"The config has changes that need a restart of the server: {names}.")
        else:
            warnings.clear("restart")

    async def _start(self, options: ServerOptions) -> int:
        limits = options.service.limits
        servicer = TrainingServicer(self.service, self._files.tokens, self._threads, self._packers)
        operations = OperationsServicer(self.service.operations, servicer, self._threads)
        self._server = grpc.aio.server(
            handlers=[servicer.handler(), operations.handler()],
            options=_channel_options(limits.max_message_bytes),
            maximum_concurrent_rpcs=_CALLS + limits.max_watchers + self._health.max_watchers,
        )
        await self._health.start(self._server)
        certificates = self._files.certificates
        if certificates is None:
            port = self._server.add_insecure_port(options.listen)
        else:
            port = self._server.add_secure_port(options.listen, certificates.credentials())
        await self._server.start()
        self._follow_readiness()
        return port

    def _follow_readiness(self) -> None:
        """Let the health service say whether experience can be stored, from now on."""
        if (is_ready := self.service.readiness().is_ready) != self._was_ready:
            self._was_ready = is_ready
            self._telling = self._loop.create_task(self._health.tell(is_ready=is_ready))
        self._loop.call_later(_HEALTH_SECONDS, self._follow_readiness)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _close_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._threads.shutdown(wait=False)
        self._packers.shutdown(wait=False)
        self._loop.close()


def _health() -> HealthService:
    # Here and not above: services in the same process need no package of the extra.
    try:
        from rl4sys.server.transport.health import HealthService
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    return HealthService()


def missing_extra(error: ModuleNotFoundError) -> ImpossibleSetup:
    """The error for a package of the extra `serve`."""
    package = (error.name or "").partition(".")[0]
    return ImpossibleSetup(f"Serving needs the package '{package}'. Install it with: pip install 'rl4sys[serve]'")


def _channel_options(max_message_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        # Dead connections are detected; clients may ping as often, and set the same times.
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        # Two servers on one port would each get a part of the clients.
        ("grpc.so_reuseport", 0),
    ]


def open_files(options: ServerOptions) -> AccessFiles:
    """The token file and the certificates that the options name."""
    return AccessFiles(options.token_file, options.tls_cert, options.tls_key, options.tls_client_ca)
