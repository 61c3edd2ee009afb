"""`rl4sys serve`: run a training server for remote clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug


def serve(
    config: Annotated[
        str | None, typer.Option(help="A YAML or JSON file with these and more settings; options override it.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(help="The address, HOST:PORT or unix:PATH; by default 127.0.0.1:50051.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The directory for learners and their data; by default ./rl4sys-data.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with lines: TOKEN \\[role=ROLE] \\[expires=DATE] \\[policies=…] CLIENT-ID-PATTERN…"),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The server's certificate (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(help="Require client certificates of this authority (PEM).")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow other machines to connect without TLS or tokens.")
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(help="Number of processes to serve with; each has its own port and a part of the learners."),
    ] = None,
    workers: Annotated[
        str | None, typer.Option(help="Run learners in processes (the default), threads, or on ray.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="The Ray cluster for --workers ray: auto or HOST:6379; by default one is started."),
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            help="What acknowledged data survives: fsync (power loss, the default), os (a kill), memory (nothing)."
        ),
    ] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve Prometheus metrics on this port.")] = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(help="Serve them on this HOST:PORT instead; beyond this machine over TLS and with a token."),
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="Format of log lines: text (the default) or json.")] = None,
    debug: Debug = False,
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
        "--processes": processes,
        "--workers": workers,
        "--address": address,
        "--durability": durability,
        "--metrics-port": metrics_port,
        "--metrics-listen": metrics_listen,
        "--log-format": log_format,
    }
    arguments = [word for option, value in values.items() if value is not None for word in (option, str(value))]
    arguments += [flag for flag, given in (("--insecure", insecure), ("--debug", debug)) if given]
    raise typer.Exit(main(arguments))
