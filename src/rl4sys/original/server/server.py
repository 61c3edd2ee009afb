"""`python -m rl4sys.server.server --debug --port 50051`: the training server under its original name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from rl4sys.server.__main__ import main as serve_until_stopped

DEFAULT_PORT = 50051


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; options of `python -m rl4sys.server` may be added."""
    parser = argparse.ArgumentParser(
        prog="python -m rl4sys.server.server",
        description="Train policies of remote clients. Serves this machine only; to serve others, add "
        "--listen 0.0.0.0:50051 with --tls-cert, --tls-key and --token-file, or with --insecure. "
        "All options: python -m rl4sys.server --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--debug", action="store_true", help="log more")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"the port (default: {DEFAULT_PORT})")
    given, further = parser.parse_known_args(arguments)
    place = [] if any(word.split("=")[0] == "--listen" for word in further) else ["--listen", f"127.0.0.1:{given.port}"]
    return serve_until_stopped([*place, *(["--debug"] if given.debug else []), *further])


def __getattr__(name: str) -> Any:
    if name == "MyRLServiceServicer":
        raise ImportError(
            "MyRLServiceServicer does not exist here: the server is a process of its own. Start it with "
            "`rl4sys serve`, or within a program with rl4sys.server.GrpcServer."
        )
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


if __name__ == "__main__":
    sys.exit(main())
