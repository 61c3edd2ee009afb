"""`rl4sys replay-update`: do an update again that was not finite, and see where it goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def replay_update(
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="A directory RUN/debug/update-….")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Do an update again that a run left out because it was not finite.

    Shows what is not finite: in the batch, in the weights, in the gradients.

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
    show(f"update {replayed.update} at step {replayed.step:,} failed then: {replayed.cause}")
    show(f"now: {replayed.error}" if replayed.error else "now it is finite: the kept batch and state are not the cause")
    for fault in replayed.faults:
        show(f"  {'' if replayed.error else 'then '}not finite, or too large: {fault}")
    if not replayed.is_exact:
        show("The state before the update was not kept; train with --debug to repeat updates exactly.")
