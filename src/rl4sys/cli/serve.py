"""`rl4sys serve`: a training server for remote clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[
        str | None, typer.Option(help="A YAML or JSON file with these and more options; those given here win.")
    ] = None,
    listen: Annotated[str | None, typer.Option(help="HOST:PORT, or unix:PATH; 127.0.0.1:50051 by default.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where learners live; ./rl4sys-data by default.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Lines of: TOKEN \\[expires=DATE] \\[policies=…] CLIENT-ID-PATTERN…")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The server's certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Clients must show a certificate of this authority.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without TLS or tokens.")
    ] = False,
    workers: Annotated[str | None, typer.Option(help="Where learners run: processes (the default) or threads.")] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            help="What an acknowledgement survives: fsync (a power cut; the default), os (a kill), memory (nothing)."
        ),
    ] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve metrics for Prometheus on this port.")] = None,
    log_format: Annotated[str | None, typer.Option(help="How log lines look: text (the default) or json.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Train the policies of remote clients until Ctrl-C or SIGTERM.

    [bold]Examples[/]

      rl4sys serve                                   [dim](this machine only)[/]

      rl4sys serve --config server.yaml

      rl4sys serve --listen 0.0.0.0:50051 --tls-cert server.pem --tls-key server.key --token-file tokens
    """
    from rl4sys.server.__main__ import main

    values = {
        "--config": config,
        "--listen": listen,
        "--data": data,
        "--token-file": token_file,
        "--tls-cert": tls_cert,
        "--tls-key": tls_key,
        "--tls-client-ca": tls_client_ca,
        "--workers": workers,
        "--durability": durability,
        "--metrics-port": metrics_port,
        "--log-format": log_format,
    }
    arguments = [word for option, value in values.items() if value is not None for word in (option, str(value))]
    arguments += [flag for flag, given in (("--insecure", insecure), ("--debug", debug)) if given]
    raise typer.Exit(main(arguments))
