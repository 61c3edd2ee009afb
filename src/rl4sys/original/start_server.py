"""`python -m rl4sys.start_server --debug --port 50051 --workers 10`: the training server under its original name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rl4sys.original.server.server import DEFAULT_PORT
from rl4sys.original.server.server import main as serve


def start_server(port: int = DEFAULT_PORT, max_workers: int = 10, debug: bool = False) -> None:
    """Serve until SIGTERM or Ctrl-C; `max_workers` has no effect. Raises `SystemExit` if the server cannot start."""
    if code := serve(["--port", str(port), *(["--debug"] if debug else [])]):
        raise SystemExit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as `python -m rl4sys.server.server` does; a number of workers is accepted and has no effect."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--workers", default="")
    given, further = parser.parse_known_args(arguments)
    kind = [] if not given.workers or given.workers.isdigit() else ["--workers", given.workers]
    return serve([*further, *kind])


if __name__ == "__main__":
    sys.exit(main())
