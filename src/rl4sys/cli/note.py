"""`rl4sys note`: write down what is to be known about a run."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.runs_option import Debug, OneRun, Runs


def note(
    run: OneRun,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", show_default=False, help="What to add; else notes are shown.")
    ] = None,
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Add a note to a run, with the time; without TEXT, show its notes.

    [bold]Examples[/]

      rl4sys note ppo-CartPole-v1-seed0 "collapses after 60k steps"
    """
    from rl4sys.cli.output import show, tell
    from rl4sys.laboratory.run_index.index import open_index
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    with open_index(runs, tell) as index:
        root, record = index.find_one(run)
        directory = root / record.id
        if text is None:
            labels = read_labels(directory)
        else:
            now = datetime.datetime.now().astimezone()
            labels = change_labels(directory, lambda old: old.noted(text, now))
    for entry in labels.notes:
        show(f"{entry.time}  {entry.text}")
    if not labels.notes:
        tell(f"{record.id} has no notes")
