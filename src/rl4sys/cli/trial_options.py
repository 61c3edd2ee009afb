"""Options and words that `sweep` and `tune` share."""

from __future__ import annotations

from typing import Annotated

import typer

Changes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", show_default=False, help="Values to change in every trial."),
]
Name = Annotated[
    str | None, typer.Option(help="Another name, and so another directory; that of the file if not given.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Trials at the same time; 'parallel_jobs' if not given.")]
Cpus = Annotated[int | None, typer.Option(min=1, help="Cores of each trial; its share of all if not given.")]
AllowFallback = Annotated[
    bool, typer.Option("--allow-fallback", help="Go on without a missing GPU or logger, and say so.")
]


def trials_in_words(count: int) -> str:
    """`1 trial`, `2 trials`."""
    return f"{count} trial{'s' * (count != 1)}"
