"""`python -m rl4sys.server`: serve until SIGTERM."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from rl4sys.config import ConfigError
from rl4sys.records import Durability
from rl4sys.server.config import load_config, server_options
from rl4sys.server.divided_data import divide
from rl4sys.server.logs import LogFormat, send_logs
from rl4sys.server.options import DEFAULT_DATA, ImpossibleSetup
from rl4sys.server.process_part import ONLY_PROCESS, ProcessPart
from rl4sys.server.transport.grpc_server import DEFAULT_LISTEN, GrpcServer
from rl4sys.server.transport.process_group import end_with_input, serve_in_processes
from rl4sys.server.transport.server_process import Hurried, serve
from rl4sys.server.workers.worker import WorkerKind

_TERMINATED = 128 + signal.SIGTERM
_OWN = ("listen", "data", "processes", "metrics_port", "metrics_listen")
"""Options that differ between the processes of a server."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and serve; returns the exit code."""
    given = {name: value for name, value in vars(_parser().parse_args(arguments)).items() if value is not None}
    path, part = given.pop("config", None), given.pop("part", None)
    try:
        config = load_config(path, given)
        options = server_options(config, part or ONLY_PROCESS)
        read = None if path is None else lambda: server_options(load_config(path, given), part or ONLY_PROCESS)
        directory = None if config.durability is Durability.MEMORY else config.data
        with send_logs(config.log_format, debug=config.debug, directory=directory):
            if part is not None:
                end_with_input()
            elif config.processes == 1:
                divide(config.data, 1)
            elif config.processes is not None:
                return serve_in_processes(options, config.processes, _shared_arguments(path, given), _announce_ports)
            serve(options, _announce, read)
    except (ConfigError, ImpossibleSetup) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except Hurried as error:
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()
        # Threads that still wait for workers would keep the process alive.
        os._exit(_TERMINATED)
    except OSError as error:
        sys.stderr.write(f"error: {error}. Choose another --data, or free space there and let this user write to it.\n")
        return 2
    return 0


def _shared_arguments(path: Path | None, given: Mapping[str, Any]) -> list[str]:
    """The options of this command that every process of a server gets, too."""
    words = [] if path is None else ["--config", str(path)]
    for name, value in given.items():
        if name not in _OWN:
            words += [f"--{name.replace('_', '-')}"] if value is True else [f"--{name.replace('_', '-')}", str(value)]
    return words


def _parser() -> argparse.ArgumentParser:
    """An option that is not given is None, so that the config file decides."""
    parser = argparse.ArgumentParser(prog="python -m rl4sys.server", description="Train policies of remote clients.")
    parser.add_argument("--config", type=Path, help="a YAML or JSON file; options given here override it")
    parser.add_argument("--listen", help=f"HOST:PORT or unix:PATH (default: {DEFAULT_LISTEN})")
    parser.add_argument(
        "--data", type=Path, help=f"the data directory, with one directory for each learner (default: {DEFAULT_DATA})"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        help="lines of: TOKEN [role=ROLE] [expires=DATE] [policies=PATTERN,…] CLIENT-ID-PATTERN…",
    )
    parser.add_argument("--tls-cert", type=Path, help="the server's certificate (PEM)")
    parser.add_argument("--tls-key", type=Path, help="its private key (PEM)")
    parser.add_argument("--tls-client-ca", type=Path, help="clients must present a certificate of this authority (PEM)")
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="listen beyond this machine without TLS or tokens"
    )
    parser.add_argument(
        "--processes", type=int, help="number of processes to serve with, each on its own port (default: one)"
    )
    parser.add_argument("--part", type=ProcessPart.parse, help=argparse.SUPPRESS)
    parser.add_argument("--workers", choices=get_args(WorkerKind), help="where learners run (default: processes)")
    parser.add_argument(
        "--address", help="the Ray cluster for --workers ray: auto or HOST:6379 (default: one is started)"
    )
    parser.add_argument(
        "--durability",
        choices=[each.value for each in Durability],
        help="what an acknowledgement survives: a power cut, a kill, or nothing (default: fsync)",
    )
    parser.add_argument("--metrics-port", type=int, help="serve metrics for Prometheus on this port")
    parser.add_argument(
        "--metrics-listen", help="serve them on this HOST:PORT instead, over TLS and with a token beyond this machine"
    )
    parser.add_argument("--log-format", choices=get_args(LogFormat), help="the format of log lines (default: text)")
    parser.add_argument("--debug", action="store_true", default=None, help="log more")
    return parser


def _announce(server: GrpcServer) -> None:
    """Print one line for a parent process that waits until calls are taken."""
    sys.stdout.write(f"serving {server.port}\n")
    sys.stdout.flush()


def _announce_ports(ports: str) -> None:
    sys.stdout.write(f"serving {ports}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
