"""All commands in one. Each imports what it needs when it runs, so that help and `doctor` come at once."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys import __version__
from rl4sys.cli import (
    cleanup,
    compare,
    config_commands,
    doctor,
    evaluate,
    export,
    list_runs,
    note,
    plot,
    policy,
    reindex,
    replay_update,
    resume,
    serve,
    show,
    simulate,
    status,
    sweep,
    tag,
    train,
    tune,
    verify,
)

app = typer.Typer(
    name="rl4sys",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="train")(train.train)
app.command(name="resume")(resume.resume)
app.command(name="evaluate")(evaluate.evaluate)
app.command(name="simulate")(simulate.simulate)
app.add_typer(policy.policy)
app.command(name="plot")(plot.plot)
app.command(name="list")(list_runs.list_runs)
app.command(name="show")(show.show)
app.command(name="verify")(verify.verify)
app.add_typer(config_commands.config)
app.command(name="compare")(compare.compare)
app.command(name="export")(export.export)
app.command(name="cleanup")(cleanup.cleanup)
# No short options here, so that -bad can be a tag to remove.
app.command(name="tag", context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})(tag.tag)
app.command(name="note")(note.note)
app.command(name="reindex")(reindex.reindex)
app.command(name="sweep")(sweep.sweep)
app.command(name="tune")(tune.tune)
app.command(name="serve")(serve.serve)
app.command(name="status")(status.status)
app.command(name="replay-update")(replay_update.replay_update)
app.command(name="doctor")(doctor.doctor)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rl4sys {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave."),
    ] = False,
) -> None:
    """Reinforcement learning inside live systems, and the laboratory to design it in.

    [bold]Examples[/]

      rl4sys train --algorithm ppo --env CartPole-v1

      rl4sys train --help        [dim]every command has examples[/]
    """
