"""`rl4sys tag`: mark runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.runs_option import Debug, OneRun, Runs


def tag(
    run: OneRun,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="+TAG|-TAG", show_default=False, help="Tags to add and to remove."),
    ] = None,
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Add tags to a run (+good) and remove them (-bad), and show what it has. `cleanup` never touches a run with +keep.

    [bold]Examples[/]

      rl4sys tag ppo-CartPole-v1-seed0 +good -bad

      rl4sys list tag=good
    """
    from rl4sys.cli.output import show, tell
    from rl4sys.laboratory.run_index.index import open_index
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    with open_index(runs, tell) as index:
        root, record = index.find_one(run)
        directory = root / record.id
        labels = change_labels(directory, lambda old: old.tagged(changes)) if changes else read_labels(directory)
    show(f"{record.id}: {' '.join(labels.tags) or 'no tags'}")
