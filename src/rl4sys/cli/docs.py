"""`rl4sys docs`: serve the documentation site of this version on this machine."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug
from rl4sys.cli.output import show

SITE = Path(__file__).parents[1] / "site"
"""The site that `make docs-site` builds, which a wheel contains."""


class SiteUnavailable(RuntimeError):
    """The site was not built, or cannot be served."""


def docs(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1; 0 takes any free one.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser, if this is a terminal on a desktop.")] = True,
    debug: Debug = False,
) -> None:
    """Open the documentation of this version in a browser, without a network.

    The address is printed and served until Ctrl-C, on this machine only.

    [bold]Examples[/]

      rl4sys docs

      rl4sys docs --port 8000 --no-browser
    """
    with serve_site(SITE, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        show(address)
        sys.stdout.flush()
        if browser and sys.stdout.isatty() and _has_desktop():
            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def serve_site(site: Path, port: int) -> ThreadingHTTPServer:
    """A server of the files of a site, on loopback."""
    if not (site / "index.html").is_file():
        raise SiteUnavailable(
            f"There is no built documentation in {site}. In a clone, build it with: make docs-site; "
            "the same pages are in docs/."
        )
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Files, directory=site))
    except OSError as error:
        raise SiteUnavailable(
            f"Port {port} of 127.0.0.1 cannot be used ({error.strerror}); expected a free one. "
            "Choose another, or leave out --port."
        ) from error


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not worth a line each."""


def _has_desktop() -> bool:
    """Whether a window can open here; otherwise Python may start a browser inside the terminal."""
    return any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
