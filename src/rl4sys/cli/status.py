"""`rl4sys status`: show the learners and clients of a training server."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from rl4sys.cli.exit_codes import NO
from rl4sys.cli.options import Debug
from rl4sys.operations.server_processes import ServerProcesses, connect_to_all

_SECONDS = 2.0
_TIMEOUT = 5.0


def status(
    server: Annotated[
        str, typer.Argument(help="The address of the server: HOST:PORT, HOST:FIRST-LAST or unix:PATH.")
    ] = "127.0.0.1:50051",
    token: Annotated[str | None, typer.Option(help="The token, if the server requires one.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token in its first line.")] = None,
    tls_ca: Annotated[
        Path | None, typer.Option(help="The certificate authority of the server (PEM); enables TLS.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="The client certificate, if the server requires one (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow sending a token without TLS.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Print only what is wrong; exit with 0 if nothing is, 1 if something is."),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds until Ctrl-C.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON for scripts; with --watch one object per line.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show the learners and clients of a training server, what is wrong first.

    The first line is "well", or says what is wrong: a server that does not store, a learner that is FAILED or HELD,
    clients of another lineage, warnings and alerts of the server, less than 1 GB of free disk, a busy learner without a
    checkpoint for 15 minutes, clients that do not obey an order, whose policy does not decide, with more than 64 MB of
    backlog or 1 % of bad inputs.

    [bold]Examples[/]

      rl4sys status

      rl4sys status 127.0.0.1:50051 --watch

      rl4sys status --check && echo well       [dim](exit code 1: something is wrong; 2: there is no answer)[/]

      rl4sys status --json
    """
    if check and watch:
        raise typer.BadParameter("--check looks once, --watch all the time. Give one of them.")
    from rl4sys.client.settings import parse_settings
    from rl4sys.wire.calls import CallFailed, Code

    tls = {name: str(path) for name, path in (("ca", tls_ca), ("cert", tls_cert), ("key", tls_key)) if path}
    values: dict[str, Any] = {"client_id": "status", "server": server, "token": token, "insecure": insecure}
    if token_file is not None:
        values["token_file"] = str(token_file)
    transport = connect_to_all(parse_settings(values | ({"tls": tls} if tls else {})), server)
    try:
        show = _Show(transport, as_json=json, is_watching=watch, is_check=check)
        show.run()
        if check and show.has_problems:
            raise typer.Exit(NO)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        # The reader is gone; discard what Python writes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except CallFailed as error:
        is_unreachable = error.code in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED)
        advice = " Is it running? Start one with: rl4sys serve" if is_unreachable else ""
        raise ServerUnreachable(f"{server}: {error} ({error.code}).{advice}") from None
    finally:
        transport.close()


class ServerUnreachable(RuntimeError):
    """The server did not answer."""


class _Show:
    """Requests and shows the status, once or until Ctrl-C; while watching, it waits for a server that is away."""

    def __init__(
        self,
        transport: ServerProcesses,
        *,
        as_json: bool,
        is_watching: bool,
        is_check: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport, self._as_json, self._is_watching, self._sleep = transport, as_json, is_watching, sleep
        self._is_check = is_check
        self.has_problems = False
        """Whether something was wrong when the status was last shown."""

    def run(self) -> None:
        """Show the status once; with --watch, again every two seconds. The first request must succeed."""
        status: dict[str, Any] | str = self._ask()
        with self._output() as put:
            put(status)
            while self._is_watching:
                self._sleep(_SECONDS)
                put(self._ask_again())

    def _ask(self) -> dict[str, Any]:
        from rl4sys.operations.status_tables import message_values, with_findings
        from rl4sys.wire.generated import status_pb2

        reply = self._transport.status(status_pb2.StatusRequest(), timeout=_TIMEOUT)
        status = with_findings(message_values(reply))
        self.has_problems = bool(status["problems"])
        return status

    def _ask_again(self) -> dict[str, Any] | str:
        from rl4sys.wire.calls import CallFailed, Code

        try:
            return self._ask()
        except CallFailed as error:
            if error.code not in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
                raise
            return f"no answer: {error}"

    @contextlib.contextmanager
    def _output(self) -> Iterator[Callable[[dict[str, Any] | str], None]]:
        """A function that shows a status: a watched terminal is redrawn, everything else gets lines."""
        from rl4sys.cli.output import console, report

        def put_json(status: dict[str, Any] | str) -> None:
            if isinstance(status, str):
                report(status)
            else:
                _print_json(status, is_one_line=self._is_watching)

        if self._as_json:
            yield put_json
        elif self._is_check:
            yield _print_findings
        elif self._is_watching and console.is_terminal:
            from rich.live import Live

            with Live(console=console, auto_refresh=False) as live:
                yield lambda status: live.update(_render(status), refresh=True)
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


def _print_findings(status: dict[str, Any] | str) -> None:
    from rl4sys.cli.output import show
    from rl4sys.operations.status_tables import problem_lines

    for line in [status] if isinstance(status, str) else problem_lines(status):
        show(line)


def _print_lines(status: dict[str, Any] | str) -> None:
    from rl4sys.cli.output import console, print_table, show
    from rl4sys.operations.status_tables import clients, learners, summary

    if isinstance(status, str):
        show(status)
    else:
        for line in summary(status):
            show(line)
        for table in (learners(status), clients(status)):
            print_table(*table)
    console.file.flush()


def _render(status: dict[str, Any] | str) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from rl4sys.operations.status_tables import clients, learners, summary

    if isinstance(status, str):
        return Text(status)
    parts: list[Text | Table] = [Text(line) for line in summary(status)]
    for names, rows in (learners(status), clients(status)):
        table = Table(*names)
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        parts.append(table)
    return Group(*parts)
