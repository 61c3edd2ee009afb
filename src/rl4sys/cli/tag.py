"""`rl4sys tag`: add and remove tags of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, OneRun, Runs


def tag(
    run: OneRun,
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
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.laboratory.run_index.index import open_index
    from rl4sys.laboratory.run_index.labels import change_labels, read_labels

    with open_index(runs, report) as index:
        root, record = index.find_one(run)
        directory = root / record.id
        labels = change_labels(directory, lambda old: old.tagged(changes)) if changes else read_labels(directory)
    if json:
        print_json({"run": str(directory), "tags": list(labels.tags)})
        return
    show(f"{record.id}: {' '.join(labels.tags) or 'no tags'}")
