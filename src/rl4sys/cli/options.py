"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def pulled(url: str, runs: Path) -> list[Path]:
    """The runs at a URL, copied into a directory."""
    from rl4sys.cli.output import report
    from rl4sys.laboratory.formatting import format_size
    from rl4sys.storage import NotStored, find_stored_runs, open_storage

    copies = []
    for stored in find_stored_runs(open_storage(url)):
        contents = stored.contents()
        if contents is None or not contents.files:
            continue
        report(f"pulling   {stored.storage.url} to {runs / contents.run}, {format_size(contents.size)}")
        copies.append(stored.fetch(runs))
    if not copies:
        raise NotStored(f"There is no run in {url}.")
    return copies


def find_here(run: str) -> Path:
    """The directory of the run that a text names."""
    from rl4sys.experiments import find_run

    return find_run(run).path


def _copied_here(context: typer.Context, given: str | list[str]) -> str | list[str]:
    """A run by its URL is copied into the directory of runs first, and is its path from then on."""
    if isinstance(given, list):
        return [path for text in given for path in _paths(context, text)]
    if "://" not in given:
        return given
    found = _paths(context, given)
    if len(found) > 1:
        raise typer.BadParameter(f"{given} holds {len(found)} runs; give the URL of one of them")
    return found[0]


def _paths(context: typer.Context, text: str) -> list[str]:
    if "://" not in text:
        return [text]
    return [str(path) for path in pulled(text, Path(context.params.get("runs") or "runs"))]


Runs = Annotated[
    Path, typer.Option("--runs", metavar="DIRECTORY", is_eager=True, help="The directory to search for runs.")
]
OneRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        callback=_copied_here,
        help="A run directory, the beginning of its name if that is unique, or its URL in storage.",
    ),
]
ManyRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        callback=_copied_here,
        help="Run directories, names or URLs; the beginning of a name stands for all matches.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        callback=_copied_here,
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
DebugTrials = Annotated[
    bool,
    typer.Option(
        "--debug", help="Run all trials one after the other in this process, with verbose logs and tracebacks."
    ),
]


def count_trials(count: int) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} trial{'s' * (count != 1)}"
