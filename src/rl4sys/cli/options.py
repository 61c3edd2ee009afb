"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.completion import run_names
from rl4sys.run_files import POLICIES


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


def _newest_run(context: typer.Context, text: str) -> str:
    """The run that a text names; of several the newest, with a note."""
    from rl4sys.cli.output import report
    from rl4sys.run_finder import find_newest

    if context.resilient_parsing:
        # A shell completes a later word: nothing is pulled, and notes would mix with what is being typed.
        return text
    return str(find_newest(_copied_here(context, text), _root(context), lambda note: report(f"note: {note}")))


def _newest_runs(context: typer.Context, texts: list[str] | None) -> list[str]:
    return [_newest_run(context, text) for text in texts or ()]


def _only_run(context: typer.Context, text: str) -> str:
    """The only run that a text names: what changes a run must not guess."""
    from rl4sys.run_finder import find_one

    return str(find_one(_copied_here(context, text), _root(context)))


def _all_runs(context: typer.Context, texts: list[str]) -> list[str]:
    """All runs that some texts name, each once."""
    from rl4sys.run_finder import find_all

    named = (path for text in texts for path in _paths(context, text))
    return list(dict.fromkeys(str(run) for text in named for run in find_all(text, _root(context))))


def _run_or_file(context: typer.Context, text: str) -> str:
    """A file or directory as it is, and otherwise the newest run of that name."""
    given = _copied_here(context, text)
    path = Path(given)
    # What searches for policies says more about files that are missing.
    if path.exists() or path.suffix in (".rl4sys", ".onnx") or path.parent.name == POLICIES:
        return given
    return _newest_run(context, given)


def _optional_run_or_file(context: typer.Context, text: str | None) -> str | None:
    return None if text is None else _run_or_file(context, text)


def _copied_here(context: typer.Context, text: str) -> str:
    """A run by its URL is copied into the directory of runs first, and is its path from then on."""
    found = _paths(context, text)
    if len(found) > 1:
        raise typer.BadParameter(f"{text} holds {len(found)} runs; give the URL of one of them")
    return found[0]


def _paths(context: typer.Context, text: str) -> list[str]:
    if "://" not in text or context.resilient_parsing:
        return [text]
    return [str(path) for path in pulled(text, _root(context))]


def _root(context: typer.Context) -> Path:
    return Path(context.params.get("runs") or "runs")


Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", is_eager=True, help="The directory to search for runs.")]
RunsToMake = Annotated[
    Path | None, typer.Option("--runs", metavar="DIR", is_eager=True, help="Where run directories are made.")
]
OneRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        callback=_newest_run,
        autocompletion=run_names,
        help="A run directory, the beginning of its name (the newest of several), last, or its URL in storage.",
    ),
]
OnlyRun = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        callback=_only_run,
        autocompletion=run_names,
        help="A run directory, the beginning of its name if that is unique, last, or its URL in storage.",
    ),
]
SomeRuns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN...",
        show_default=False,
        callback=_newest_runs,
        autocompletion=run_names,
        help="Run directories, beginnings of names (the newest of several), last, or URLs.",
    ),
]
ManyRuns = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        callback=_all_runs,
        autocompletion=run_names,
        help="Run directories, names, last or URLs; the beginning of a name stands for all matches.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE",
        callback=_run_or_file,
        autocompletion=run_names,
        help="A run (its name, or last), a checkpoint, a policy file, or a learner directory of a server.",
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="RUN|FILE",
        callback=_optional_run_or_file,
        autocompletion=run_names,
        help="Begin with the weights of a run, a checkpoint or a policy file.",
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
