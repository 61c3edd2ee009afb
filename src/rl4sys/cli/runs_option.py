"""Options that all commands about many runs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Runs = Annotated[Path, typer.Option("--runs", metavar="DIRECTORY", help="The directory whose runs are meant.")]
OneRun = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or any unique beginning of its name.")]
ManyRuns = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="Runs; the beginning of several names means all of them."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Debug = Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")]
