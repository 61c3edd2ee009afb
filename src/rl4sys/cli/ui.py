"""`rl4sys ui`: pages in a browser."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug
from rl4sys.run_finder import RUNS

_PACKAGES = ("starlette", "uvicorn", "jinja2")


class UiUnavailable(RuntimeError):
    """The packages of the extra `ui` are not installed."""


def ui(
    runs: Annotated[
        list[Path] | None,
        typer.Option("--runs", metavar="DIR", show_default=False, help="A directory with runs; by default runs."),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="HOST:PORT", show_default=False, help="A training server to show."),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to serve the pages.")] = "127.0.0.1:8265",
    page_cert: Annotated[
        Path | None, typer.Option(metavar="PEM", show_default=False, help="The certificate of the pages, for TLS.")
    ] = None,
    page_key: Annotated[Path | None, typer.Option(metavar="PEM", show_default=False, help="Its key.")] = None,
    page_token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Tokens to sign in with, one in each line."),
    ] = None,
    page_name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", show_default=False, help="Another name of this machine in addresses of pages."),
    ] = None,
    token: Annotated[str | None, typer.Option(help="The token for the servers, if they require one.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with that token in its first line; the role viewer is enough.")
    ] = None,
    operator_token_file: Annotated[
        Path | None, typer.Option(help="A file with the token of an operator, for commands to learners.")
    ] = None,
    tls_ca: Annotated[
        Path | None, typer.Option(help="The certificate authority of the servers (PEM); enables TLS.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="The client certificate, if the servers require one (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow sending a token without TLS.")] = False,
    debug: Debug = False,
) -> None:
    """Show runs, comparisons and training servers in a browser, live. Ctrl-C ends it; nothing depends on it.

    The link that it prints works once: the browser that opens it is then signed in. Only this machine can open it,
    unless --listen names another address, which needs TLS and a token.

    [bold]Examples[/]

      rl4sys ui

      rl4sys ui --runs runs --runs /data/team/runs

      rl4sys ui --listen 127.0.0.1:9000

      rl4sys ui --server 127.0.0.1:50051

      rl4sys ui --server train.example.com:50051 --tls-ca ca.pem --token-file viewer.token
    """
    if missing := [name for name in _PACKAGES if importlib.util.find_spec(name) is None]:
        raise UiUnavailable(f"The pages need the package '{missing[0]}'. Install it with: pip install 'rl4sys[ui]'")
    from rl4sys.cli.output import report
    from rl4sys.ui.page_address import PageAddress
    from rl4sys.ui.server_access import ServerAccess
    from rl4sys.ui.settings import UiSettings
    from rl4sys.ui.ui_server import serve

    shown = tuple(runs) if runs else (RUNS,) if not server or RUNS.is_dir() else ()
    address = PageAddress(listen, page_cert, page_key, page_token_file, tuple(page_name or ()))
    access = ServerAccess(token, token_file, operator_token_file, tls_ca, tls_cert, tls_key, insecure)
    serve(
        UiSettings(shown, tuple(server or ()), address, access), lambda link: report(f"open  {link}  (it works once)")
    )
