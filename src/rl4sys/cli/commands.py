"""The commands of `rl4sys`. Only the one that is called is imported, so that each starts fast."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated, Any

import typer

from rl4sys import __version__
from rl4sys.cli.option_aliases import COMMANDS as REWRITTEN
from rl4sys.cli.option_aliases import rewritten

COMMANDS = {
    "train": "train.train",
    "resume": "resume.resume",
    "evaluate": "episodes.evaluate",
    "simulate": "episodes.simulate",
    "model": "model.model",
    "policy": "policy.policy",
    "plot": "results.plot",
    "list": "runs.list_runs",
    "show": "runs.show",
    "verify": "verify.verify",
    "config": "config_commands.config",
    "compare": "results.compare",
    "export": "results.export",
    "cleanup": "cleanup.cleanup",
    "tag": "labels.tag",
    "note": "labels.note",
    "pull": "stored_runs.pull",
    "push": "stored_runs.push",
    "sweep": "sweep.sweep",
    "tune": "tune.tune",
    "cluster": "cluster.cluster",
    "serve": "serve.serve",
    "status": "status.status",
    "learners": "learners.learners",
    "control": "control.control",
    "profile": "profile.profile",
    "data": "data.data",
    "token": "token.token",
    "replay-update": "replay_update.replay_update",
    "check-env": "check_env.check_env",
    "ui": "ui.ui",
    "doctor": "doctor.doctor",
    "docs": "docs.docs",
}
"""The module of each command in this package, and the function or group in it."""
_SETTINGS = {
    # No short options, so that -bad can be a tag to remove.
    "tag": {"ignore_unknown_options": True, "help_option_names": ["--help"]},
}


def build(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """The app with some of its commands."""
    app = typer.Typer(
        name="rl4sys",
        no_args_is_help=True,
        add_completion=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=_unwrapped(_options))(_options)
    for name in names:
        _add(app, name)
    return app


def build_for(arguments: list[str]) -> typer.Typer:
    """The app with the commands that some arguments need: one, none, or all for the help."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return build([first])
    return build([]) if first == "--version" else build()


def with_known_options(arguments: list[str]) -> list[str]:
    """The same arguments, with options of other libraries rewritten as ours."""
    if not arguments or arguments[0] not in REWRITTEN or not any(text.startswith("--") for text in arguments):
        return arguments
    group = typer.main.get_command(build([arguments[0]]))
    command = getattr(group, "commands", {}).get(arguments[0], group)
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    return rewritten(arguments, {*known, "--help"})


def _add(app: typer.Typer, name: str) -> None:
    module, _, attribute = COMMANDS[name].partition(".")
    found: Any = getattr(import_module(f"rl4sys.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        for command in found.registered_commands:
            command.help = _unwrapped(command.callback)
        app.add_typer(found)
    else:
        app.command(name=name, help=_unwrapped(found), context_settings=_SETTINGS.get(name))(found)


def _unwrapped(function: Callable[..., Any] | None) -> str:
    """A docstring whose paragraphs are unwrapped, to be wrapped by the terminal; example lines stay."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else " ".join(text.splitlines()) for text in paragraphs)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rl4sys {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Reinforcement learning inside live systems, and a laboratory for experiments.

    [bold]Examples[/]

      rl4sys train --algorithm ppo --env CartPole-v1

      rl4sys train --help        [dim]every command has examples[/]

    [bold]Exit codes[/]

    0: success. 1: the answer is no, such as a difference, or some of several runs failed. 2: an error. 3: an alert
    stopped the run. 130: interrupted.
    """
