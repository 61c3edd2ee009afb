"""`rl4sys note`: add notes to a run."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, OneRun, Runs


def note(
    run: OneRun,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", show_default=False, help="The note to add; without it, the notes are shown."),
    ] = None,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Add a note to a run, with the current time; without TEXT, show its notes.

    [bold]Examples[/]

      rl4sys note ppo-CartPole-v1-seed0 "collapses after 60k steps"
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.laboratory.run_index.index import open_index
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    with open_index(runs, report) as index:
        root, record = index.find_one(run)
        directory = root / record.id
        if text is None:
            labels = read_labels(directory)
        else:
            now = datetime.datetime.now().astimezone()
            labels = change_labels(directory, lambda old: old.noted(text, now))
    if json:
        notes = [{"time": entry.time, "text": entry.text} for entry in labels.notes]
        print_json({"run": str(directory), "notes": notes})
        return
    for entry in labels.notes:
        show(f"{entry.time}  {entry.text}")
    if not labels.notes:
        report(f"{record.id} has no notes")
