"""A server as a process: it serves until a signal, reloads at SIGHUP, and drains at SIGTERM."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rl4sys.server.transport.access_files import AccessFiles
from rl4sys.server.transport.addresses import host_of, is_local
from rl4sys.server.transport.grpc_server import GrpcServer, ServerOptions, missing_extra, open_files
from rl4sys.server.transport.signals import ServerSignals

if TYPE_CHECKING:
    from rl4sys.server.transport.metrics_server import MetricsServer

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
        files = open_files(options)
        # Before the service, which may read logs for a while, and until it has drained: probes want to know.
        with serve_metrics(options, files) as metrics:
            server = GrpcServer(options, files)
            _log.info("Serving on %s, port %d, data in %s.", options.listen, server.port, options.data)
            try:
                if metrics is not None:
                    metrics.observe(server.service, server.is_responsive)
                if ready is not None:
                    ready(server)
                while not signals.is_stopping:
                    signals.wait(_LOOK_SECONDS)
                    if signals.take_reload():
                        server.reload(read)
                    else:
                        files.reload()
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
def serve_metrics(options: ServerOptions, files: AccessFiles) -> Iterator[MetricsServer | None]:
    """Serve metrics and probes within the `with` block, if the options say where."""
    if options.metrics_port is None and options.metrics_listen is None:
        yield None
        return
    try:
        # Here and not above: a server without metrics needs no package of the extra.
        from rl4sys.server.transport.metrics_server import MetricsServer
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    listen = options.metrics_listen or _default_listen(options)
    is_shared = not is_local(listen)
    files = files if is_shared and options.metrics_listen is not None else AccessFiles(None, None, None, None)
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    metrics = MetricsServer(host, port, options.metrics_names, files.certificates, files.tokens)
    scheme = "http" if files.certificates is None else "https"
    _log.info("Metrics on %s://%s:%d/metrics.", scheme, f"[{host}]" if ":" in host else host, metrics.port)
    if is_shared and files.tokens is None:
        _log.warning("Metrics can be read from other machines, like everything with --insecure.")
    try:
        yield metrics
    finally:
        metrics.close()


def _default_listen(options: ServerOptions) -> str:
    """Where a port alone is served: to other machines only if the server is insecure."""
    is_shared = options.insecure and not is_local(options.listen)
    host = host_of(options.listen) if is_shared else "127.0.0.1"
    return f"[{host}]:{options.metrics_port}" if ":" in host else f"{host}:{options.metrics_port}"
