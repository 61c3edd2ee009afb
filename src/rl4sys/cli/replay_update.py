"""`rl4sys replay-update`: repeat an update that was not finite, and find the cause."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json


def replay_update(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="A directory RUN/debug/update-…")],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Repeat an update that a run skipped because it was not finite.

    Shows the NaN and Inf values in the batch, the weights and the gradients.

    [bold]Examples[/]

      rl4sys replay-update runs/sac-Pendulum-v1-seed0-20260101-120000/debug/update-000000124-1
    """
    from dataclasses import asdict

    from rl4sys.cli.output import print_json, show
    from rl4sys.experiments import replay_update as replay

    replayed = replay(directory)
    if as_json:
        print_json(asdict(replayed))
        return
    show(f"update {replayed.update} at step {replayed.step:,} failed: {replayed.cause}")
    show(
        f"now: {replayed.error}" if replayed.error else "now it is finite: the stored batch and state are not the cause"
    )
    for fault in replayed.faults:
        show(f"  {'' if replayed.error else 'then '}not finite, or too large: {fault}")
    if not replayed.is_exact:
        show("The state before the update was not stored; train with --debug to repeat updates exactly.")
