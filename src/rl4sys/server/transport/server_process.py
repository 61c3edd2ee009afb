"""A server as a process: it serves until a signal, reloads at SIGHUP, and drains at SIGTERM."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from rl4sys.server.service.training_service import TrainingService
from rl4sys.server.transport.addresses import host_of, is_local
from rl4sys.server.transport.grpc_server import GrpcServer, ServerOptions, missing_extra
from rl4sys.server.transport.signals import ServerSignals

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
"""How often files are looked at that may have changed."""


class Hurried(RuntimeError):
    """The server was asked twice to stop, and did not wait until learners had saved. What was acknowledged is safe."""


def serve(
    options: ServerOptions,
    ready: Callable[[GrpcServer], None] | None = None,
    read: Callable[[], ServerOptions] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; for the main thread. Raises `Hurried` at a second such signal.

    `ready` is called once, when calls are taken. `read` reads the options again, for SIGHUP.
    """
    with ServerSignals() as signals:
        server = GrpcServer(options)
        _log.info("Serving on %s, port %d, data in %s.", options.listen, server.port, options.data)
        try:
            with _metrics(options, server.service):
                if ready is not None:
                    ready(server)
                while not signals.is_stopping:
                    signals.wait(_LOOK_SECONDS)
                    if signals.take_reload():
                        server.reload(read)
                    else:
                        server.reload_files()
        finally:
            _drain(server, signals)


def _drain(server: GrpcServer, signals: ServerSignals) -> None:
    _log.info("Draining.")
    finished: Future[None] = Future()
    finished.add_done_callback(lambda _: signals.wake())
    thread = threading.Thread(target=_run_into, args=(finished, server.drain), name="drain", daemon=True)
    thread.start()
    while not finished.done() and not signals.is_hurried:
        signals.wait(_LOOK_SECONDS)
    if not finished.done():
        raise Hurried("Asked again to stop: learners are not saved, and fold their logs again at the next start.")
    thread.join()
    finished.result()


def _run_into(future: Future[None], work: Callable[[], None]) -> None:
    try:
        work()
        future.set_result(None)
    except Exception as error:  # raised again in the main thread
        future.set_exception(error)


@contextmanager
def _metrics(options: ServerOptions, service: TrainingService) -> Iterator[None]:
    """Serve metrics within the `with` block if a port is set; to other machines only if the server is insecure."""
    if options.metrics_port is None:
        yield
        return
    is_shared = options.insecure and not is_local(options.listen)
    host = host_of(options.listen) if is_shared else "127.0.0.1"
    try:
        from rl4sys.server.transport.metrics import MetricsServer
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    metrics = MetricsServer(host, options.metrics_port, service.current_status)
    _log.info("Metrics on http://%s:%d/metrics.", f"[{host}]" if ":" in host else host, metrics.port)
    if is_shared:
        _log.warning("Metrics can be read from other machines, like everything with --insecure.")
    try:
        yield
    finally:
        metrics.close()
