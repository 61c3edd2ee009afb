"""The connection of a command to a training server: its options, and what an operator calls over it."""

from __future__ import annotations

import getpass
import inspect
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rl4sys.operations.server_processes import ServerProcesses, connect_to_all

if TYPE_CHECKING:
    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.client.operations_calls import OperationsCalls
    from rl4sys.wire.calls import CallFailed
    from rl4sys.wire.generated import status_pb2

_TIMEOUT = 10.0


class ServerRefused(RuntimeError):
    """The server did not answer, or refused the command."""


def _options(
    server: Annotated[
        str,
        typer.Option(
            "--server", metavar="HOST:PORT", help="The address of the server: HOST:PORT, HOST:FIRST-LAST or unix:PATH."
        ),
    ] = "127.0.0.1:50051",
    token: Annotated[str | None, typer.Option(help="The token of an operator, if the server requires one.")] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token in its first line.")] = None,
    tls_ca: Annotated[
        Path | None, typer.Option(help="The certificate authority of the server (PEM); enables TLS.")
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="The client certificate, if the server requires one (PEM).")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key (PEM).")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow sending a token without TLS.")] = False,
) -> None:
    """The options that `with_server` adds."""


class ServerConnection:
    """A server, as a command uses it."""

    def __init__(self, transport: GrpcTransport, operations: OperationsCalls, processes: ServerProcesses) -> None:
        """`transport` and `operations` reach one process, which has the learner of the command."""
        self.transport, self.operations, self._processes = transport, operations, processes

    @property
    def operator_name(self) -> str:
        """The user of this command, for the audit log."""
        return f"{getpass.getuser()}@{socket.gethostname()}"

    def require_one(self, learner: str) -> None:
        """Raise unless a learner is named, or the server has one process: each has files of its own."""
        if not learner and len(self._processes) > 1:
            raise ServerRefused(
                "Each process of this server has its own audit log. Name a learner, or give the port of one process."
            )

    def operations_of_client(self, client: str) -> OperationsCalls:
        """The commands of the process that knows a client."""
        from rl4sys.client.operations_calls import OperationsCalls

        return OperationsCalls(self._processes.of_client(client, _TIMEOUT))

    def status(self, learner: str = "") -> status_pb2.StatusReply:
        """The status of the server, or of one learner."""
        from rl4sys.wire.generated import status_pb2

        asked = self.transport if learner else self._processes
        return asked.status(status_pb2.StatusRequest(learner=learner), timeout=_TIMEOUT)


def with_server(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a connection to a command, which gets a `ServerConnection` as its first argument."""
    own, added = _parameters(command)[1:], _parameters(_options)

    def run(**values: Any) -> None:
        options = {each.name: values.pop(each.name) for each in added}
        _call(command, options, values)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in [*own, *added]}
    run.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]  # what typer reads
    return run


def _parameters(command: Callable[..., None]) -> list[inspect.Parameter]:
    """The parameters of a function, to be passed by name, with their annotations evaluated."""
    hints = get_type_hints(command, include_extras=True)
    found = inspect.signature(command).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name]) for each in found]


def _call(command: Callable[..., None], options: dict[str, Any], values: dict[str, Any]) -> None:
    """Call a command with a connection. A failed call becomes one line."""
    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.client.operations_calls import OperationsCalls
    from rl4sys.client.settings import parse_settings
    from rl4sys.wire.calls import CallFailed
    from rl4sys.wire.port_range import own_address

    files = {"ca": options["tls_ca"], "cert": options["tls_cert"], "key": options["tls_key"]}
    tls = {name: str(path) for name, path in files.items() if path}
    server = options["server"]
    settings = {"client_id": "operator", "server": server, "token": options["token"], "insecure": options["insecure"]}
    if options["token_file"] is not None:
        settings["token_file"] = str(options["token_file"])
    parsed = parse_settings(settings | ({"tls": tls} if tls else {}))
    transport = GrpcTransport(replace(parsed, server=own_address(server, values.get("learner") or "")))
    processes = connect_to_all(parsed, server)
    try:
        command(ServerConnection(transport, OperationsCalls(transport), processes), **values)
    except CallFailed as error:
        raise _refused(server, error) from None
    finally:
        transport.close()
        processes.close()


def _refused(server: str, error: CallFailed) -> ServerRefused:
    from rl4sys.wire.calls import Code

    match error.code:
        case Code.UNAVAILABLE | Code.DEADLINE_EXCEEDED:
            return ServerRefused(f"{server}: {error} ({error.code}). Is it running? Start one with: rl4sys serve")
        case Code.UNIMPLEMENTED:
            return ServerRefused(f"{server}: the server knows no such command. Upgrade it. ({error.code})")
        case _:
            return ServerRefused(f"{error} ({error.code})")
