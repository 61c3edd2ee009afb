"""Commands of `rl4sys learners` that read or write files: export, install and warm-start."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.options import Best, Debug, Json
from rl4sys.cli.server_connection import ServerConnection, ServerRefused, with_server

if TYPE_CHECKING:
    from rl4sys.wire.generated import operations_pb2

_TIMEOUT = 300.0

Learner = Annotated[str, typer.Argument(metavar="LEARNER", help="Its name, as `rl4sys learners list` shows it.")]
Reason = Annotated[str, typer.Option(help="Why; the audit log keeps it.")]


@with_server
def export(
    server: ServerConnection,
    learner: Learner,
    output: Annotated[Path | None, typer.Option(help="The file to write; LEARNER.rl4sys by default.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the newest policy of a learner to a file.

    `rl4sys policy inspect` and `rl4sys policy bench` read it, clients act with it, and `rl4sys learners install`
    gives it to another learner.

    [bold]Examples[/]

      rl4sys learners export shared~lander --output lander.rl4sys
    """
    from rl4sys.atomic_files import replace_file
    from rl4sys.cli.output import print_json, show
    from rl4sys.policy import PortablePolicy
    from rl4sys.wire.generated import operations_pb2

    request = operations_pb2.ExportRequest(learner=learner, operator_name=server.operator_name)
    parts, digest = [], b""
    for chunk in server.operations.export(request, _TIMEOUT):
        parts.append(chunk.data)
        digest = chunk.sha256
    data = b"".join(parts)
    if hashlib.sha256(data).digest() != digest:
        raise ServerRefused("The policy was damaged on its way. Try again.")
    path = output or Path(f"{learner}.rl4sys")
    replace_file(path, data)
    policy = PortablePolicy.read(path)
    if json:
        print_json({"file": str(path), "bytes": len(data), "version": policy.version, "sha256": policy.sha256})
    else:
        show(f"{path}: version {policy.version} of {learner}, {policy.weights.size:,} weights")


@with_server
def install(
    server: ServerConnection,
    learner: Learner,
    policy: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="A policy file, a run, a checkpoint or a learner directory.")
    ],
    best: Best = True,
    reason: Reason = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a policy the next version of a learner.

    Its program must be equal to that of the learner: the same observations, actions, networks and heads. The acting
    network takes its weights, and so does its target network; its optimizer starts over. Critics and replayed
    experience stay. Schedules of exploration continue.

    [bold]Examples[/]

      rl4sys learners install shared~lander lander.rl4sys --reason "back to yesterday's policy"

      rl4sys learners install shared~lander runs/ppo-LunarLander-v3-seed0-20260101-120000
    """
    data = _policy_bytes(policy, best=best)
    reply = _send(server, learner, reason, policy, "INSTALLED_KIND_POLICY", data)
    _report(reply, json=json)


@with_server
def warm_start(
    server: ServerConnection,
    learner: Learner,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run, a checkpoint or a learner directory.")],
    best: Best = True,
    reason: Reason = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Let a learner continue from the state of a laboratory run: all networks, targets, optimizers and statistics.

    Algorithm and shapes must be equal. If they are not, only the policy is installed, as `install` does.
    To start from the experience of another learner, use `rl4sys learners fork`.

    [bold]Examples[/]

      rl4sys learners warm-start shared~lander runs/sac-LunarLander-seed0-20260101-120000
    """
    from rl4sys.checkpoints import encode_state
    from rl4sys.cli.output import report
    from rl4sys.experiments.policies.trained_policy import find_policy
    from rl4sys.wire.calls import CallFailed, Code

    trained = find_policy(run, best=best)
    if trained.training is None:
        raise ServerRefused(f"{run} is a policy alone. Use: rl4sys learners install {learner} {run}")
    data = encode_state(trained.training.learner_state())
    try:
        reply = _send(server, learner, reason, run, "INSTALLED_KIND_STATE", data)
    except CallFailed as error:
        if error.code is not Code.FAILED_PRECONDITION:
            raise
        report(f"The whole state does not fit, so only the policy is installed: {error}")
        reply = _send(server, learner, reason, run, "INSTALLED_KIND_POLICY", _policy_bytes(run, best=best))
    _report(reply, json=json)


def _policy_bytes(source: str, *, best: bool) -> bytes:
    """The policy file of a source. A file is sent as it is: reading a run needs torch, reading a file does not."""
    from rl4sys.policy import PortablePolicy
    from rl4sys.policy.portable_policy import SUFFIX

    path = Path(source)
    if path.suffix == SUFFIX and path.is_file():
        return PortablePolicy.read(path).to_bytes()
    from rl4sys.experiments.policies.trained_policy import find_policy

    return find_policy(source, best=best).policy.to_bytes()


def _send(
    server: ServerConnection, learner: str, reason: str, source: str, kind: Any, data: bytes
) -> operations_pb2.ManageReply:
    from rl4sys.wire.generated import operations_pb2
    from rl4sys.wire.message_sizes import FILE_CHUNK_BYTES

    def parts() -> Iterator[operations_pb2.InstallRequest]:
        yield operations_pb2.InstallRequest(
            learner=learner,
            reason=reason,
            operator_name=server.operator_name,
            kind=kind,
            source=source[-256:],
            sha256=hashlib.sha256(data).digest(),
        )
        for start in range(0, len(data), FILE_CHUNK_BYTES):
            yield operations_pb2.InstallRequest(data=data[start : start + FILE_CHUNK_BYTES])

    return server.operations.install(parts(), _TIMEOUT)


def _report(reply: operations_pb2.ManageReply, *, json: bool) -> None:
    from rl4sys.cli.output import print_json, show
    from rl4sys.cli.status_tables import message_values

    if json:
        print_json(message_values(reply))
    else:
        show(reply.message)
