"""All commands in one. Each imports what it needs when it runs, so that help and `doctor` come at once."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys import __version__
from rl4sys.cli import doctor, evaluate, plot, resume, serve, status, train

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
app.command(name="plot")(plot.plot)
app.command(name="serve")(serve.serve)
app.command(name="status")(status.status)
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
