"""`rl4sys status`: what a training server is doing."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rl4sys.client.grpc_transport import GrpcTransport

_SECONDS = 2.0
_PATIENCE_SECONDS = 5.0


def status(
    server: Annotated[str, typer.Argument(help="HOST:PORT, or unix:PATH.")] = "127.0.0.1:50051",
    token: Annotated[str | None, typer.Option(help="Where the server asks for one.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="The same, in the first line of a file.")] = None,
    tls_ca: Annotated[Path | None, typer.Option(help="Who vouches for the server (PEM); switches TLS on.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="What to show the server, where it asks (PEM).")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Let a token travel unencrypted.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON for scripts; with --watch one object a line.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Show the learners and clients of a training server.

    [bold]Examples[/]

      rl4sys status

      rl4sys status 127.0.0.1:50051 --watch

      rl4sys status --json
    """
    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.client.settings import parse_settings
    from rl4sys.wire.calls import CallFailed, Code

    tls = {name: str(path) for name, path in (("ca", tls_ca), ("cert", tls_cert), ("key", tls_key)) if path}
    values: dict[str, Any] = {"client_id": "status", "server": server, "token": token, "insecure": insecure}
    if token_file is not None:
        values["token_file"] = str(token_file)
    transport = GrpcTransport(parse_settings(values | ({"tls": tls} if tls else {})))
    try:
        _Show(transport, as_json=json, is_watching=watch).run()
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        # Nobody reads any more; what Python still wants to write at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CallFailed as error:
        is_silent = error.code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        advice = " Is it running? Start one with: rl4sys serve" if is_silent else ""
        raise ServerUnreachable(f"{server}: {error} ({error.code}).{advice}") from None
    finally:
        transport.close()


class ServerUnreachable(RuntimeError):
    """No server answered."""


class _Show:
    """Asks and shows, once or until Ctrl-C; a server that goes away while it is watched is waited for."""

    def __init__(
        self,
        transport: GrpcTransport,
        *,
        as_json: bool,
        is_watching: bool,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport, self._as_json, self._is_watching, self._sleep = transport, as_json, is_watching, sleep

    def run(self) -> None:
        """The first answer must come; then, if that is wanted, one every two seconds."""
        status: dict[str, Any] | str = self._ask()
        with self._place() as put:
            put(status)
            while self._is_watching:
                self._sleep(_SECONDS)
                put(self._ask_again())

    def _ask(self) -> dict[str, Any]:
        from rl4sys.cli.server_tables import facts
        from rl4sys.wire.generated import status_pb2

        return facts(self._transport.status(status_pb2.StatusRequest(), timeout=_PATIENCE_SECONDS))

    def _ask_again(self) -> dict[str, Any] | str:
        from rl4sys.wire.calls import CallFailed, Code

        try:
            return self._ask()
        except CallFailed as error:
            if error.code not in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
                raise
            return f"no answer: {error}"

    @contextlib.contextmanager
    def _place(self) -> Iterator[Callable[[dict[str, Any] | str], None]]:
        """Where to put what comes: a terminal that is watched is written over, everything else has lines."""
        from rich.live import Live

        from rl4sys.cli.output import console, tell

        def put_json(status: dict[str, Any] | str) -> None:
            if isinstance(status, str):
                tell(status)
            else:
                _print_json(status, is_one_line=self._is_watching)

        if self._as_json:
            yield put_json
        elif self._is_watching and console.is_terminal:
            with Live(console=console, auto_refresh=False) as live:
                yield lambda status: live.update(_picture(status), refresh=True)
        else:
            yield _print_lines


def _print_json(status: dict[str, Any], *, is_one_line: bool) -> None:
    import json

    from rl4sys.cli.output import console, print_json

    if is_one_line:
        console.file.write(json.dumps(status) + "\n")
    else:
        print_json(status)
    console.file.flush()


def _print_lines(status: dict[str, Any] | str) -> None:
    from rl4sys.cli.output import console, print_table, show
    from rl4sys.cli.server_tables import clients, learners, summary

    if isinstance(status, str):
        show(status)
    else:
        for line in summary(status):
            show(line)
        for table in (learners(status), clients(status)):
            print_table(*table)
    console.file.flush()


def _picture(status: dict[str, Any] | str) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rl4sys.cli.server_tables import clients, learners, summary

    if isinstance(status, str):
        return Text(status)
    parts: list[Text | Table] = [Text(line) for line in summary(status)]
    for names, rows in (learners(status), clients(status)):
        table = Table(*names)
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        parts.append(table)
    return Group(*parts)
