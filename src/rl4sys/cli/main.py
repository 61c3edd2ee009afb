"""The command `rl4sys`."""

from __future__ import annotations

import errno
import logging
import sys
from typing import Annotated, NoReturn

import typer

from rl4sys import __version__
from rl4sys.cli import doctor, evaluate, plot, resume, train
from rl4sys.cli.output import errors

app = typer.Typer(
    name="rl4sys",
    help="Reinforcement learning inside live systems, and the laboratory to design it in.",
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
    """Reinforcement learning inside live systems, and the laboratory to design it in."""


def main() -> NoReturn:
    """Run a command; what goes wrong is told in one line, and in full with --debug."""
    debug = "--debug" in sys.argv
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if not debug:
        logging.getLogger().handlers[0].setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    try:
        app()
    except Exception as error:  # the last resort of a program: whatever it is, say it and fail
        if debug:
            raise
        errors.print(f"[bold red]error:[/] {_sentence(error)}", soft_wrap=True, highlight=False)
        raise SystemExit(1) from None
    raise SystemExit(0)


def _sentence(error: Exception) -> str:
    from rich.markup import escape

    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return (
            f"the disk is full ({escape(str(error.filename or 'while saving'))}). Everything saved before is intact: "
            f"free some space, then go on with `rl4sys resume RUN`."
        )
    text = escape(str(error)) or type(error).__name__
    expected = type(error).__module__.startswith("rl4sys.")
    return text if expected else f"{type(error).__name__}: {text}\n(run again with --debug for the traceback)"


if __name__ == "__main__":
    main()
