"""`rl4sys learners`: list and manage the learners of a training server."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli import learner_files
from rl4sys.cli.options import Debug, Json
from rl4sys.cli.server_connection import ServerConnection, with_server

if TYPE_CHECKING:
    from rl4sys.wire.generated import operations_pb2

_TIMEOUT = 120.0
"""Some commands wait until a worker has ended."""

learners = typer.Typer(
    name="learners",
    no_args_is_help=True,
    help="List and manage the learners of a training server.",
    rich_markup_mode="rich",
)

Learner = Annotated[str, typer.Argument(metavar="LEARNER", help="Its name, as `rl4sys learners list` shows it.")]
Reason = Annotated[str, typer.Option(help="Why; the audit log keeps it.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Settings = Annotated[
    list[str], typer.Argument(metavar="KEY=VALUE...", help="Settings by their path, such as algorithm.lr=1e-4.")
]


class CommandNotConfirmed(RuntimeError):
    """A command that changes much was not confirmed."""


@learners.command("list")
@with_server
def list_learners(server: ServerConnection, json: Json = False, debug: Debug = False) -> None:
    """List the learners of a server with their state, version and orders.

    [bold]Examples[/]

      rl4sys learners list

      rl4sys learners list --server train.example.com:50051 --tls-ca ca.pem --token-file operator.token --json
    """
    from rl4sys.cli.output import print_json, print_table
    from rl4sys.operations.status_tables import message_values

    found = [message_values(each) for each in server.status().learners]
    if json:
        print_json(found)
        return
    names = ("learner", "algorithm", "state", "version", "clients", "queued", "learns", "clients do", "problem")
    print_table(names, [_row(each) for each in found])


@learners.command()
@with_server
def show(server: ServerConnection, learner: Learner, json: Json = False, debug: Debug = False) -> None:
    """Show everything that the server knows about one learner.

    [bold]Examples[/]

      rl4sys learners show shared~lander

      rl4sys learners show shared~lander --json
    """
    from rl4sys.cli.output import print_json
    from rl4sys.cli.output import show as put
    from rl4sys.operations.status_tables import message_values

    status = server.status(learner)
    found = message_values(status.learners[0])
    if json:
        print_json(found | {"clients_listed": [message_values(client) for client in status.clients]})
        return
    for name, value in found.items():
        if value not in ("", [], {}):
            put(f"{name:<24} {_text(name, value)}")
    if found["control"] not in ("", "follow"):
        put(f"Its clients are ordered: {found['control']}. To end that: rl4sys control {learner} follow")


@learners.command()
@with_server
def pause(
    server: ServerConnection, learner: Learner, reason: Reason = "", json: Json = False, debug: Debug = False
) -> None:
    """Stop learning until `resume`. Experience that arrives is stored, and learned from later.

    The state survives restarts of the server. Clients keep acting with the newest version. To drop experience instead,
    use `freeze`.

    [bold]Examples[/]

      rl4sys learners pause shared~lander --reason "machine is needed until noon"
    """
    request = _request(server, learner, reason)
    request.pause.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def resume(
    server: ServerConnection, learner: Learner, reason: Reason = "", json: Json = False, debug: Debug = False
) -> None:
    """Learn again after `pause`, first from what was stored meanwhile.

    [bold]Examples[/]

      rl4sys learners resume shared~lander
    """
    request = _request(server, learner, reason)
    request.resume.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def restart(
    server: ServerConnection, learner: Learner, reason: Reason = "", json: Json = False, debug: Debug = False
) -> None:
    """End the worker of one learner and start another one. A learner that FAILED tries again.

    Nothing is lost: the new worker continues from the last checkpoint and the log. Other learners are not affected.

    [bold]Examples[/]

      rl4sys learners restart shared~lander --reason "plug-in repaired"
    """
    request = _request(server, learner, reason)
    request.restart.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def reset(
    server: ServerConnection,
    learner: Learner,
    reason: Reason = "",
    yes: Yes = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Start over with initial weights and an empty log. Clients follow to the new lineage.

    The files of the old learner are moved to `deleted` in the data directory of the server.

    [bold]Examples[/]

      rl4sys learners reset shared~lander --reason "new reward"
    """
    _confirm(server, learner, f"Let '{learner}' forget everything and start over?", is_confirmed=yes)
    request = _request(server, learner, reason)
    request.reset.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def delete(
    server: ServerConnection,
    learner: Learner,
    reason: Reason = "",
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files, too.")] = False,
    yes: Yes = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Remove a learner. Its files are moved to `deleted` in the data directory, unless --purge is given.

    Its clients learn of it. One that keeps running joins again and creates a new learner, but keeps acting with
    the policy it has until an operator accepts the new lineage: stop clients first, or order them `off`.

    [bold]Examples[/]

      rl4sys learners delete shared~trial-3 --reason "trial is over"
    """
    files = "and all of its files" if purge else "and move its files aside"
    _confirm(server, learner, f"Delete '{learner}' {files}?", is_confirmed=yes)
    request = _request(server, learner, reason)
    request.delete.purge = purge
    _manage(server, request, json=json)


@learners.command()
@with_server
def fork(
    server: ServerConnection,
    learner: Learner,
    name: Annotated[str, typer.Argument(metavar="NEW", help="The name of the copy: shared~POLICY_ID, or a client id.")],
    changes: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE...", show_default=False, help="Settings to change in it.")
    ] = None,
    refold: Annotated[
        bool, typer.Option("--refold", help="Learn again from the whole log, with the changed settings.")
    ] = False,
    reason: Reason = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy a learner with its log and its checkpoints under another name.

    The copy continues from the present state. With --refold it starts from initial weights and learns again from the
    whole log; then every setting may change, also networks and buffers. That needs the log from its beginning.

    [bold]Examples[/]

      rl4sys learners fork shared~lander shared~lander-2 algorithm.lr=1e-4

      rl4sys learners fork shared~lander shared~wide "network.actor.hidden_dims=[256, 256]" --refold
    """
    request = _request(server, learner, reason)
    request.fork.name, request.fork.refold = name, refold
    request.fork.changes.update(_changes(changes or []))
    _manage(server, request, json=json)


@learners.command("set")
@with_server
def set_settings(
    server: ServerConnection,
    learner: Learner,
    changes: Settings,
    reason: Reason = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Change hyperparameters of a learner while it runs.

    A change is a record in the log of the learner and applies to the records after it, so that folding the log again
    gives the same weights. Networks, buffers, seeds and normalization cannot change: use `fork --refold` or `reset`.
    Clients that ask for the earlier settings keep the learner.

    [bold]Examples[/]

      rl4sys learners set shared~lander algorithm.lr=1e-4

      rl4sys learners set shared~lander algorithm.entropy_coef=0.01 checkpoint_frequency=5000 --reason "collapsed"
    """
    request = _request(server, learner, reason)
    request.set.changes.update(_changes(changes))
    _manage(server, request, json=json)


@learners.command()
@with_server
def freeze(
    server: ServerConnection, learner: Learner, reason: Reason = "", json: Json = False, debug: Debug = False
) -> None:
    """Act, but do not learn: experience that arrives is counted as unused ("frozen"), and versions stay.

    Unlike `pause`, nothing of it is learned later.

    [bold]Examples[/]

      rl4sys learners freeze shared~lander --reason "acceptance test"
    """
    request = _request(server, learner, reason)
    request.freeze.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def unfreeze(
    server: ServerConnection, learner: Learner, reason: Reason = "", json: Json = False, debug: Debug = False
) -> None:
    """Learn again from experience that arrives from now on.

    [bold]Examples[/]

      rl4sys learners unfreeze shared~lander
    """
    request = _request(server, learner, reason)
    request.unfreeze.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def accept(
    server: ServerConnection,
    learner: Learner,
    reason: Reason = "",
    yes: Yes = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Let clients that hold another lineage follow this learner.

    Clients keep the policy they have when the history of a learner is not the one they know, such as after its data
    were lost. Restore a backup if there is one; otherwise this lets them continue with the present history.

    [bold]Examples[/]

      rl4sys learners accept shared~lander --reason "there is no backup"
    """
    _confirm(server, learner, f"Let all clients of '{learner}' replace their policies?", is_confirmed=yes)
    request = _request(server, learner, reason)
    request.accept.SetInParent()
    _manage(server, request, json=json)


@learners.command()
@with_server
def audit(
    server: ServerConnection,
    learner: Annotated[str, typer.Argument(metavar="LEARNER", help="Only commands about this one.")] = "",
    most: Annotated[int, typer.Option("--most", "-n", min=1, max=1_000, help="How many, the newest.")] = 20,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the log of commands, also refused ones: who gave them, when, from where, why, and the result.

    [bold]Examples[/]

      rl4sys learners audit

      rl4sys learners audit shared~lander -n 100 --json
    """
    from datetime import datetime

    from rl4sys.cli.output import print_json, print_table
    from rl4sys.operations.status_tables import message_values
    from rl4sys.wire.generated import operations_pb2

    server.require_one(learner)
    reply = server.operations.audit(operations_pb2.AuditRequest(learner=learner, most=most), _TIMEOUT)
    found = [message_values(entry) for entry in reply.entries]
    if json:
        print_json(found)
        return
    rows = [
        [
            datetime.fromtimestamp(each["time"]).astimezone().isoformat(" ", "seconds"),
            f"{each['operator_name'] or '–'} ({each['who']})",
            f"{each['command']} {'' if each['arguments_json'] == '{}' else each['arguments_json']}".strip(),
            each["learner"],
            each["reason"],
            each["result"] if each["result"] == "OK" else f"{each['result']}: {each['message']}",
        ]
        for each in found
    ]
    print_table(("time", "who", "command", "learner", "reason", "result"), rows)


for _command in (learner_files.export, learner_files.install, learner_files.warm_start):
    learners.command()(_command)


def _request(server: ServerConnection, learner: str, reason: str) -> operations_pb2.ManageRequest:
    from rl4sys.wire.generated import operations_pb2

    return operations_pb2.ManageRequest(learner=learner, reason=reason, operator_name=server.operator_name)


def _manage(server: ServerConnection, request: operations_pb2.ManageRequest, *, json: bool) -> None:
    from rl4sys.cli.output import print_json
    from rl4sys.cli.output import show as put
    from rl4sys.operations.status_tables import message_values

    reply = server.operations.manage(request, _TIMEOUT)
    if json:
        print_json(message_values(reply))
    else:
        put(reply.message)


def _confirm(server: ServerConnection, learner: str, question: str, *, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    status = server.status(learner).learners[0]
    known = f"It has {status.clients} clients and is at version {status.version}, after {status.learned_steps} steps."
    if not sys.stdin.isatty():
        raise CommandNotConfirmed(f"{known} There is no terminal to confirm it: give --yes.")
    if not typer.confirm(f"{known} {question}", err=True):
        raise CommandNotConfirmed("Nothing was changed.")


def _changes(words: list[str]) -> dict[str, str]:
    """Settings as JSON by their path. What is no JSON is a text."""
    import json

    changes = {}
    for word in words:
        key, separator, text = word.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"'{word}' is no setting; write KEY=VALUE, such as algorithm.lr=1e-4.")
        try:
            json.loads(text)
            changes[key] = text
        except ValueError:
            changes[key] = json.dumps(text)
    return changes


def _row(learner: dict[str, Any]) -> list[str]:
    learns = "no (frozen)" if learner["frozen"] else "yes"
    return [
        learner["learner"],
        learner["algorithm"],
        learner["state"].partition("_STATE_")[2].lower(),
        str(learner["version"]),
        str(learner["clients"]),
        str(learner["queued_segments"]),
        learns,
        learner["control"] or "follow",
        learner["problem"],
    ]


def _text(name: str, value: Any) -> str:
    if name == "state":
        return str(value).partition("_STATE_")[2].lower()
    if name == "written":
        from datetime import datetime

        return datetime.fromtimestamp(value).astimezone().isoformat(" ", "seconds")
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(key, part)}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(_text(name, part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
