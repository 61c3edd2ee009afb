"""Measures a connected client through its server, for `rl4sys profile CLIENT_ID`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl4sys.cli.server_connection import ServerConnection
    from rl4sys.client.operations_calls import OperationsCalls
    from rl4sys.laboratory.client_profile import Recording
    from rl4sys.wire.generated import operations_pb2

_TIMEOUT = 10.0
_PAUSE = 0.5


def measure_client(server: ServerConnection, client: str, learner: str, seconds: float, seed: int) -> Recording:
    """Order a client to measure what it costs, and wait until it has. An interrupted command ends the order."""
    from rl4sys.laboratory.client_profile import ProfileFailed, Recording
    from rl4sys.wire.generated import operations_pb2, profile_pb2

    operations = server.operations_of_client(client)
    request = operations_pb2.ProfileRequest(client=client, learner=learner, operator_name=server.operator_name)
    request.begin.CopyFrom(profile_pb2.ProfileOrder(seconds=seconds, seed=seed))
    reply = operations.profile(request, _TIMEOUT)
    sequence = reply.progress.sequence
    recording = Recording(clients=[client])
    try:
        reply = _follow(operations, request, sequence, recording, seconds)
    except BaseException:
        request.end.CopyFrom(operations_pb2.EndProfile(sequence=sequence))
        operations.profile(request, _TIMEOUT)
        raise
    if reply.progress.HasField("floor_nanoseconds"):
        recording.floor = reply.progress.floor_nanoseconds
    if problem := reply.progress.problem:
        advice = (
            "" if reply.has_begun else f" Its software, {reply.software or 'which it does not name'}, may be too old."
        )
        raise ProfileFailed(f"The client '{client}' could not be measured: {problem}.{advice}")
    return recording


def _follow(
    operations: OperationsCalls,
    request: operations_pb2.ProfileRequest,
    sequence: int,
    recording: Recording,
    seconds: float,
) -> operations_pb2.ProfileReply:
    """Read blocks until there are no more; returns the last reply."""
    from rich.progress import Progress

    from rl4sys.cli.output import errors
    from rl4sys.client.profile_blocks import block_values
    from rl4sys.wire.generated import operations_pb2

    with Progress(console=errors, transient=True) as progress:
        bar = progress.add_task("waiting for the next report of the client", total=seconds)
        while True:
            request.read.CopyFrom(operations_pb2.ReadProfile(sequence=sequence, have_blocks=len(recording.blocks)))
            reply = operations.profile(request, _TIMEOUT)
            recording.blocks += [block_values(block) for block in reply.progress.blocks]
            if reply.progress.is_complete:
                return reply
            measured = sum(block["seconds"] for block in recording.blocks)
            if reply.has_begun:
                progress.update(bar, completed=measured, description="measuring")
            time.sleep(_PAUSE)
