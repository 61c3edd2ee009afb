"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Runs = Annotated[Path, typer.Option("--runs", metavar="DIRECTORY", help="The directory to search for runs.")]
OneRun = Annotated[
    str, typer.Argument(metavar="RUN", help="A run directory, or the beginning of its name if that is unique.")
]
ManyRuns = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Run directories or names; the beginning of a name stands for all matches."),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        help="A run (or the beginning of its name), a checkpoint, a policy file, or a learner directory of a server.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print verbose logs and full tracebacks.")]
DebugTraining = Annotated[
    bool,
    typer.Option(
        "--debug", help="Record gradients, weights and a profile of updates; print verbose logs and full tracebacks."
    ),
]
AllowFallback = Annotated[
    bool, typer.Option("--allow-fallback", help="Continue with a warning if a GPU or a logger is missing.")
]
Best = Annotated[bool, typer.Option("--best/--latest", help="Use the best or the latest checkpoint of a run.")]
Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", show_default=False, help="Settings to override in every trial."),
]
Name = Annotated[
    str | None, typer.Option(help="Name of the sweep or study and its directory; by default that of the file.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Trials at the same time; by default 'parallel_jobs'.")]
Cpus = Annotated[int | None, typer.Option(min=1, help="Cores per trial; by default an equal share of all cores.")]


def count_trials(count: int) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} trial{'s' * (count != 1)}"
