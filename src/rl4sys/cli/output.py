"""Output of the command line: results go to standard output, everything else to standard error.

Without a terminal, text is written without Rich, whose import would delay a list that goes into a pipe.
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

_TERMINAL_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Environment variables that make Rich assume a terminal."""


def __getattr__(name: str) -> Any:
    """`console` and `errors`, created when they are first used."""
    if name not in ("console", "errors"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return globals().setdefault(name, _make_console(stderr=name == "errors"))


def is_terminal() -> bool:
    """Whether standard output is a terminal, and not a file or a pipe."""
    return _may_be_terminal(sys.stdout) and bool(_console("console").is_terminal)


def width() -> int:
    """Columns of the terminal."""
    return _console("console").width


def show(text: str) -> None:
    """Print a line of results verbatim: brackets in paths and package names are not markup."""
    if _may_be_terminal(sys.stdout):
        _print_verbatim(_console("console"), text)
    else:
        sys.stdout.write(f"{text}\n")


def report(text: str) -> None:
    """Print a line about the progress of the command."""
    if _may_be_terminal(sys.stderr):
        _print_verbatim(_console("errors"), text)
    else:
        # A reader that is gone must not end a run.
        with contextlib.suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    """Print one JSON document, without colours or wrapping."""
    sys.stdout.write(json.dumps(value, indent=1) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; without a terminal, aligned lines that are never wrapped."""
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
    """Prints log records as lines above a live display."""

    def emit(self, record: logging.LogRecord) -> None:
        report(self.format(record))


def send_logs(*, debug: bool) -> None:
    """Print warnings, and with --debug all log records of RL4Sys."""
    handler = _Log()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s" if debug else "warning: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("rl4sys").setLevel(logging.DEBUG if debug else logging.WARNING)


def _may_be_terminal(stream: TextIO) -> bool:
    return stream.isatty() or any(name in os.environ for name in _TERMINAL_VARIABLES)


def _make_console(*, stderr: bool) -> Console:
    from rich.console import Console

    class QuietConsole(Console):
        """Standard error. When its reader is gone it becomes silent: a run must not end because of that."""

        def on_broken_pipe(self) -> None:
            self.quiet = True

    return QuietConsole(stderr=True, highlight=False) if stderr else Console(highlight=False)


def _console(name: str) -> Console:
    made: Console = globals()[name] if name in globals() else __getattr__(name)
    return made


def _print_verbatim(to: Console, text: str) -> None:
    from rich.text import Text

    to.print(Text(text), soft_wrap=True)
