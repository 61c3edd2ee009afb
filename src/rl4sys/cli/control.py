"""`rl4sys control`: order what the clients of a learner have to do, such as to stop using its policy."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import typer

from rl4sys.cli.options import Debug, Json
from rl4sys.cli.server_connection import ServerConnection, with_server

_TIMEOUT = 10.0
_LOOK_SECONDS = 0.25


@with_server
def control(
    server: ServerConnection,
    learner: Annotated[str, typer.Argument(metavar="LEARNER", help="Its name, as `rl4sys learners list` shows it.")],
    mode: Annotated[
        Literal["off", "frozen", "follow"],
        typer.Argument(help="off: fallbacks decide; frozen: keep the present version; follow: use the newest."),
    ],
    reason: Annotated[str, typer.Option(help="Why; clients and the audit log show it. Required unless follow.")] = "",
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wait up to this long for all connected clients to obey.")
    ] = 0.0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Order what the clients of a learner have to do: the kill switch.

    With off, no version of the policy decides anything: each client calls its fallback. With frozen, each client keeps
    the version it has. With follow, they use the newest version again. An order is stored before it is sent, survives
    restarts of servers and clients, and reaches connected clients at once; others get it when they connect.

    [bold]Examples[/]

      rl4sys control shared~lander off --reason "latency doubled since 14:05"

      rl4sys control shared~lander frozen --reason "release tonight" --wait 10

      rl4sys control shared~lander follow
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.operations.status_tables import message_values
    from rl4sys.wire.generated import operations_pb2, training_pb2

    modes = {
        "off": training_pb2.CONTROL_MODE_OFF,
        "frozen": training_pb2.CONTROL_MODE_FROZEN,
        "follow": training_pb2.CONTROL_MODE_FOLLOW,
    }
    request = operations_pb2.ControlRequest(
        learner=learner, mode=modes[mode], reason=reason, operator_name=server.operator_name
    )
    reply = server.operations.control(request, _TIMEOUT)
    obeying, connected = _wait(server, learner, wait)
    if json:
        print_json({**message_values(reply), "obeying_clients": obeying, "connected_clients": connected})
        return
    show(f"The clients of {learner} are ordered: {mode} (order {reply.control.sequence}).")
    show(
        f"It was sent to {reply.watching_clients} streams; {obeying} of {connected} connected clients have reported to "
        f"obey. See: rl4sys learners show {learner}"
    )


def _wait(server: ServerConnection, learner: str, seconds: float) -> tuple[int, int]:
    """How many clients obey, and how many are connected; asked again until they are equal or the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        status = server.status(learner)
        connected = sum(client.connected for client in status.clients)
        obeying = status.learners[0].obeying_clients
        if obeying >= connected or time.monotonic() > deadline:
            return obeying, connected
        time.sleep(_LOOK_SECONDS)
