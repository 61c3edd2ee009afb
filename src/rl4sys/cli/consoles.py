"""The terminal as Rich writes to it."""

from __future__ import annotations

from rich.console import Console


class _Errors(Console):
    """Standard error. When nobody listens any more it falls silent: no run should end for that."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


console = Console(highlight=False)
errors: Console = _Errors(stderr=True, highlight=False)
