"""`rl4sys pull` and `rl4sys push`: copy runs from storage, and into it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json, OnlyRun, Runs, pulled


def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="A run in storage, or a place with several.")],
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy runs from storage (s3://, gs://, file://) into a directory.

    What is there already is not copied again. A run that is still training is copied as its last checkpoint left it.

    [bold]Examples[/]

      rl4sys pull s3://lab/runs/my-sweep

      rl4sys pull file:///shared/runs/first-try --runs elsewhere
    """
    from rl4sys.cli.output import print_json, show

    copies = pulled(url, runs)
    if json:
        print_json([str(path) for path in copies])
        return
    for path in copies:
        show(str(path))


def push(
    run: OnlyRun,
    url: Annotated[str, typer.Argument(metavar="URL", help="Where to store it: s3://, gs:// or file://.")],
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Copy a run into storage, from where any machine can resume it.

    [bold]Examples[/]

      rl4sys push ppo-CartPole s3://lab/runs/first-try
    """
    from rl4sys.cli.output import show
    from rl4sys.experiments import RunBusy
    from rl4sys.laboratory.run_index.training_process import held
    from rl4sys.storage import StoredRun, open_storage

    path = Path(run)
    storage = open_storage(url)
    storage.require_writable()
    with held(path) as is_free:
        if not is_free:
            raise RunBusy(f"{path} is training; wait for it, or stop it first.")
        stored = StoredRun(storage)
        stored.begin(path.name)
        stored.store(path)
    show(f"stored   {path} in {url}; continue it anywhere with: rl4sys resume {url}")
