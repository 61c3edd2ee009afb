"""Commands of `rl4sys learners` that read or write files: export, install and warm-start."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.options import Best, Debug, Json
from rl4sys.cli.server_connection import ServerConnection, ServerRefused, with_server

if TYPE_CHECKING:
    from rl4sys.wire.generated import operations_pb2

_TIMEOUT = 300.0
_PART_BYTES = 1 << 20
_FULL_SECONDS = 1.0
"""Between two attempts while the inbox of the learner is full."""

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
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", show_default=False, help="A run, a checkpoint or a learner directory."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A learner directory, of a server or a backup, whose log has the experience to start from."),
    ] = None,
    best: Best = True,
    reason: Reason = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Let a learner continue from the state of a laboratory run, or learn from recorded experience.

    From a run: all networks, targets, optimizers and statistics. Algorithm and shapes must be equal. If they are not,
    only the policy is installed, as `install` does.

    From recorded experience (--data): what the log of another learner still has becomes part of the log of this one, as
    decisions that another policy made, each segment once. For algorithms with replay, such as DQN and SAC.
    Observations and actions must be equal; any algorithm may have recorded it. To copy a learner with its log,
    use `rl4sys learners fork`.

    [bold]Examples[/]

      rl4sys learners warm-start shared~lander runs/sac-LunarLander-seed0-20260101-120000

      rl4sys learners warm-start shared~lander --data /backups/learners/shared~lander-ppo
    """
    if (run is None) == (data is None):
        raise ServerRefused("Name either a RUN or --data PATH.")
    if data is not None:
        _send_experience(server, learner, reason, data, json=json)
    else:
        _report(_send_state(server, learner, reason, str(run), best=best), json=json)


def _send_state(
    server: ServerConnection, learner: str, reason: str, run: str, *, best: bool
) -> operations_pb2.ManageReply:
    from rl4sys.checkpoints import encode_state
    from rl4sys.cli.output import report
    from rl4sys.experiments.policies.trained_policy import find_policy
    from rl4sys.wire.calls import CallFailed, Code

    trained = find_policy(run, best=best)
    if trained.training is None:
        raise ServerRefused(f"{run} is a policy alone. Use: rl4sys learners install {learner} {run}")
    data = encode_state(trained.training.learner_state())
    try:
        return _send(server, learner, reason, run, "INSTALLED_KIND_STATE", data)
    except CallFailed as error:
        if error.code is not Code.FAILED_PRECONDITION:
            raise
        report(f"The whole state does not fit, so only the policy is installed: {error}")
        return _send(server, learner, reason, run, "INSTALLED_KIND_POLICY", _policy_bytes(run, best=best))


def _send_experience(server: ServerConnection, learner: str, reason: str, directory: Path, *, json: bool) -> None:
    """Send the log of a learner in parts. A part that does not fit yet is sent again: what is known is ignored."""
    from rl4sys.cli.output import print_json, show
    from rl4sys.policy import PortablePolicy
    from rl4sys.records import RecordsDamaged, RecordsGone
    from rl4sys.server.learners.learner_setup import SetupDamaged
    from rl4sys.server.learners.recorded_experience import RecordedLog, UnusableExperience
    from rl4sys.wire.generated import operations_pb2

    request = operations_pb2.ExportRequest(learner=learner, operator_name=server.operator_name)
    exported = b"".join(chunk.data for chunk in server.operations.export(request, _TIMEOUT))
    policy = PortablePolicy.from_bytes(exported, Path(learner)).explore
    count = 0
    try:
        part = operations_pb2.RecordedExperience()
        size = 0
        for segment in RecordedLog.open(directory).segments(policy):
            part.segments.append(segment)
            count, size = count + 1, size + len(segment.segment)
            if size >= _PART_BYTES:
                _send_part(server, learner, reason, directory, part)
                part, size = operations_pb2.RecordedExperience(), 0
        if part.segments:
            _send_part(server, learner, reason, directory, part)
    except (UnusableExperience, SetupDamaged, RecordsDamaged, RecordsGone) as error:
        raise ServerRefused(str(error)) from error
    if json:
        print_json({"segments": count})
    else:
        show(f"{learner} has {count} segments of {directory} in its log, and learns from them.")


def _send_part(
    server: ServerConnection,
    learner: str,
    reason: str,
    directory: Path,
    part: operations_pb2.RecordedExperience,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    from rl4sys.wire.calls import CallFailed, Code

    while True:
        try:
            _send(server, learner, reason, str(directory), "INSTALLED_KIND_EXPERIENCE", part.SerializeToString())
            return
        except CallFailed as error:
            if error.code is not Code.RESOURCE_EXHAUSTED:
                raise
            pause(_FULL_SECONDS)


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
    from rl4sys.operations.status_tables import message_values

    if json:
        print_json(message_values(reply))
    else:
        show(reply.message)
