"""`rl4sys serve`: a training server for remote clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    listen: Annotated[str, typer.Option(help="HOST:PORT, or unix:PATH.")] = "127.0.0.1:50051",
    data: Annotated[Path, typer.Option(help="Where learners live.")] = Path("rl4sys-data"),
    token_file: Annotated[Path | None, typer.Option(help="Lines of: TOKEN CLIENT-ID-PATTERN…")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The server's certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Clients must show a certificate of this authority.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without TLS or tokens.")
    ] = False,
    workers: Annotated[str, typer.Option(help="Where learners run: processes or threads.")] = "processes",
    durability: Annotated[
        str, typer.Option(help="What an acknowledgement survives: fsync (a power cut), os (a kill), memory (nothing).")
    ] = "fsync",
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Train the policies of remote clients until Ctrl-C or SIGTERM.

    [bold]Examples[/]

      rl4sys serve                                   [dim](this machine only)[/]

      rl4sys serve --listen 0.0.0.0:50051 --tls-cert server.pem --tls-key server.key --token-file tokens
    """
    from rl4sys.server.__main__ import main

    files = {
        "--token-file": token_file,
        "--tls-cert": tls_cert,
        "--tls-key": tls_key,
        "--tls-client-ca": tls_client_ca,
    }
    arguments = ["--listen", listen, "--data", str(data), "--workers", workers, "--durability", durability]
    arguments += [word for option, path in files.items() if path is not None for word in (option, str(path))]
    arguments += [flag for flag, given in (("--insecure", insecure), ("--debug", debug)) if given]
    raise typer.Exit(main(arguments))
