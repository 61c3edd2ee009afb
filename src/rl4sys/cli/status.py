"""`rl4sys status`: what a training server is doing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rl4sys.client.grpc_transport import GrpcTransport

_SECONDS = 2.0


def status(
    server: Annotated[str, typer.Argument(help="HOST:PORT, or unix:PATH.")] = "127.0.0.1:50051",
    token: Annotated[str | None, typer.Option(help="Where the server asks for one.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Show the learners and clients of a training server.

    [bold]Examples[/]

      rl4sys status

      rl4sys status 127.0.0.1:50051 --watch

      rl4sys status --json
    """
    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.client.settings import ClientSettings
    from rl4sys.wire.calls import CallFailed

    transport = GrpcTransport(ClientSettings(client_id="status", server=server, token=token))
    try:
        while True:
            facts = _ask(transport)
            _show(facts, as_json=json)
            if not watch:
                return
            time.sleep(_SECONDS)
    except KeyboardInterrupt:
        return
    except CallFailed as error:
        raise ServerUnreachable(
            f"{server}: {error} ({error.code}). Is it running? Start one with: rl4sys serve"
        ) from None
    finally:
        transport.close()


class ServerUnreachable(RuntimeError):
    """No server answered."""


def _ask(transport: GrpcTransport) -> dict[str, Any]:
    from google.protobuf.json_format import MessageToDict

    from rl4sys.wire.generated import status_pb2

    reply = transport.status(status_pb2.StatusRequest(), timeout=5.0)
    return MessageToDict(reply, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def _show(facts: dict[str, Any], *, as_json: bool) -> None:
    from rl4sys.cli.output import print_json, print_table, show

    if as_json:
        print_json(facts)
        return
    server = facts["server"]
    problem = f": {server['problem']}" if server["problem"] else ""
    state = server["state"].removeprefix("SERVER_STATE_").lower()
    show(f"{server['software']}, {state}{problem}, up {server['uptime_seconds']:.0f} s")
    print_table(
        ("learner", "algorithm", "state", "version", "clients", "queued", "segments/s", "steps", "return", "problem"),
        [
            [
                learner["learner"],
                learner["algorithm"],
                learner["state"].removeprefix("LEARNER_STATE_").lower(),
                str(learner["version"]),
                str(learner["clients"]),
                str(learner["queued_segments"]),
                f"{learner['segments_per_second']:.1f}",
                str(learner["learned_steps"]),
                f"{learner['mean_return']:.1f}" if "mean_return" in learner else "–",
                learner["problem"],
            ]
            for learner in facts["learners"]
        ],
    )
    print_table(
        ("client", "learner", "version", "stored steps", "repeated", "silent"),
        [
            [
                client["client"],
                client["learner"],
                str(client.get("version", "–")),
                str(client["stored_steps"]),
                str(client["repeated_segments"]),
                f"{client['silent_seconds']:.0f} s",
            ]
            for client in facts["clients"]
        ],
    )
