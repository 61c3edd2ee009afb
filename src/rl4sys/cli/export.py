"""`rl4sys export`: runs for a paper, a page or a spreadsheet."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.runs_option import Debug, ManyRuns, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.comparison.comparison import Comparison


def export(
    runs_wanted: ManyRuns,
    format_: Annotated[str, typer.Option("--format", help="latex, markdown, csv, json or html.")] = "markdown",
    metrics: Annotated[str, typer.Option(help="What the tables tell, separated by commas.")] = "return",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", show_default=False, help="The file to write; else it is printed.")
    ] = None,
    runs: Runs = Path("runs"),
    debug: Debug = False,
) -> None:
    """Write runs as tables (latex, markdown, html with curves), one row each (csv), or with all there is (json).

    [bold]Examples[/]

      rl4sys export ppo-CartPole dqn-CartPole --format latex --output results.tex

      rl4sys export ppo-CartPole --format csv > runs.csv
    """
    from rl4sys.atomic_files import replace_file
    from rl4sys.cli.output import show, tell
    from rl4sys.config import ConfigError
    from rl4sys.laboratory.comparison.comparison import compare
    from rl4sys.laboratory.comparison.export import Format, as_csv
    from rl4sys.laboratory.comparison.export import export as text_of
    from rl4sys.laboratory.run_index.index import open_index

    if format_ not in tuple(Format):
        raise ConfigError(f"--format {format_}: expected one of {', '.join(Format)}.")
    with open_index(runs, tell) as index:
        chosen = index.find_all(runs_wanted)
    if format_ == Format.CSV:
        # One row per run says all there is of it: nothing is compared.
        text = as_csv(chosen)
    else:
        comparison = compare(chosen, [name.strip() for name in metrics.split(",")])
        for remark in comparison.remarks:
            tell(f"note: {remark}")
        picture = _picture(comparison) if format_ == Format.HTML else None
        text = text_of(chosen, comparison, Format(format_), picture)
    if output is None:
        sys.stdout.write(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    replace_file(output, text.encode())
    show(f"wrote {output}")


def _picture(comparison: Comparison) -> bytes:
    from rl4sys.laboratory.comparison.learning_curves import draw

    with tempfile.TemporaryDirectory() as directory:
        return draw(comparison.groups, comparison.metrics, Path(directory) / "curves.png").read_bytes()
