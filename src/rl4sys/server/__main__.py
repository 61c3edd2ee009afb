"""`python -m rl4sys.server`: serve until SIGTERM."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rl4sys.records import Durability
from rl4sys.server.options import DEFAULT_DATA, ImpossibleSetup, ServiceOptions
from rl4sys.server.serving import DEFAULT_LISTEN, GrpcServer, ServerOptions, serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and serve; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rl4sys.server", description="Train policies of remote clients.")
    parser.add_argument("--listen", default=DEFAULT_LISTEN, help="HOST:PORT or unix:PATH (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="where learners live (default: %(default)s)")
    parser.add_argument("--token-file", type=Path, help="lines of: TOKEN [expires=DATE] CLIENT-ID-PATTERN…")
    parser.add_argument("--tls-cert", type=Path, help="the server's certificate (PEM)")
    parser.add_argument("--tls-key", type=Path, help="its private key (PEM)")
    parser.add_argument("--tls-client-ca", type=Path, help="clients must show a certificate of this authority (PEM)")
    parser.add_argument("--insecure", action="store_true", help="listen beyond this machine without TLS or tokens")
    parser.add_argument("--workers", choices=("processes", "threads"), default="processes", help="where learners run")
    parser.add_argument(
        "--durability",
        choices=[each.value for each in Durability],
        default=Durability.FSYNC.value,
        help="what an acknowledgement survives: a power cut, a kill, or nothing (default: %(default)s)",
    )
    parser.add_argument("--debug", action="store_true", help="log more")
    given = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if given.debug else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        options = ServerOptions(
            given.listen,
            given.data,
            given.token_file,
            given.tls_cert,
            given.tls_key,
            given.tls_client_ca,
            given.insecure,
            ServiceOptions(given.workers, Durability(given.durability)),
        )
        serve(options, _tell)
    except ImpossibleSetup as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _tell(server: GrpcServer) -> None:
    """One line for whoever started this and waits for it."""
    sys.stdout.write(f"serving {server.port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
