"""Where the command line writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


class _Errors(Console):
    """Standard error. When nobody listens any more it falls silent: no run should end for that."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


console = Console(highlight=False)
errors = _Errors(stderr=True, highlight=False)


def show(text: str) -> None:
    """A line of results, exactly as it is: brackets and colons in paths and package names are no markup."""
    console.print(Text(text), soft_wrap=True)


def tell(text: str) -> None:
    """A line about what is going on."""
    errors.print(Text(text), soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document for scripts: no colours, no wrapping."""
    console.file.write(json.dumps(value, indent=1) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for people; where there is no terminal, aligned lines that are never broken."""
    if console.is_terminal:
        table = Table(*columns)
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        console.print(table)
        return
    widths = [max(len(row[place]) for row in [columns, *rows]) for place in range(len(columns))]
    for row in [columns, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        console.file.write("  ".join(cells).rstrip() + "\n")


class _Log(logging.Handler):
    """Log records as lines above whatever is live on the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(self.format(record))


def send_logs(*, debug: bool) -> None:
    """Show warnings, and with --debug everything that RL4Sys notes."""
    handler = _Log()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s" if debug else "warning: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("rl4sys").setLevel(logging.DEBUG if debug else logging.WARNING)
