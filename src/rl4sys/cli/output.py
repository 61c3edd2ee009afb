"""Where the command line writes: results to standard output, everything else to standard error.

What is not shown on a terminal is written as it is, without Rich: a list that goes into a pipe should be there at once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    console: Console
    errors: Console

_DECIDING = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables by which Rich may take something else for a terminal."""


def __getattr__(name: str) -> Any:
    """`console` and `errors`, imported when they are first used."""
    if name not in ("console", "errors"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from rl4sys.cli import consoles

    return globals().setdefault(name, getattr(consoles, name))


def is_terminal() -> bool:
    """Whether results are shown to somebody, and not written into a file or a pipe."""
    return _may_be_terminal(sys.stdout) and bool(_console("console").is_terminal)


def width() -> int:
    """Columns of the terminal."""
    return _console("console").width


def show(text: str) -> None:
    """A line of results, exactly as it is: brackets and colons in paths and package names are no markup."""
    if _may_be_terminal(sys.stdout):
        _print_as_it_is(_console("console"), text)
    else:
        sys.stdout.write(f"{text}\n")


def tell(text: str) -> None:
    """A line about what is going on."""
    if _may_be_terminal(sys.stderr):
        _print_as_it_is(_console("errors"), text)
    else:
        # When nobody listens any more: no run should end for that.
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    """One JSON document for scripts: no colours, no wrapping."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for people; where there is no terminal, aligned lines that are never broken."""
    if is_terminal():
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns)
        for row in rows:
            table.add_row(*(Text(cell, overflow="fold") for cell in row))
        _console("console").print(table)
        return
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    for row in [columns, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


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


def _may_be_terminal(stream: TextIO) -> bool:
    return stream.isatty() or any(name in os.environ for name in _DECIDING)


def _console(name: str) -> Console:
    made: Console = globals()[name] if name in globals() else __getattr__(name)
    return made


def _print_as_it_is(to: Console, text: str) -> None:
    from rich.text import Text

    to.print(Text(text), soft_wrap=True)
