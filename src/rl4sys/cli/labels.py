"""`rl4sys tag` and `rl4sys note`: label runs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, OnlyRun, Runs


def tag(
    run: OnlyRun,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="+TAG|-TAG", show_default=False, help="Tags to add (+) and to remove (-)."),
    ] = None,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Add tags to a run (+good), remove tags (-bad), and show its tags. `cleanup` never touches runs tagged keep.

    [bold]Examples[/]

      rl4sys tag ppo-CartPole-v1-seed0 +good -bad

      rl4sys list tag=good
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    directory = Path(run)
    labels = change_labels(directory, lambda old: old.tagged(changes)) if changes else read_labels(directory)
    if json:
        print_json({"run": run, "tags": list(labels.tags)})
        return
    show(f"{directory.name}: {' '.join(labels.tags) or 'no tags'}")


def note(
    run: OnlyRun,
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
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    directory = Path(run)
    if text is None:
        labels = read_labels(directory)
    else:
        now = datetime.datetime.now().astimezone()
        labels = change_labels(directory, lambda old: old.noted(text, now))
    if json:
        notes = [{"time": entry.time, "text": entry.text} for entry in labels.notes]
        print_json({"run": run, "notes": notes})
        return
    for entry in labels.notes:
        show(f"{entry.time}  {entry.text}")
    if not labels.notes:
        report(f"{directory.name} has no notes")
