"""The exit codes of all commands; 0 is success."""

from __future__ import annotations

NO = 1
"""The answer is no, such as a difference, or some of several runs failed."""
ERROR = 2
"""An error, or wrong arguments."""
STOPPED = 3
"""An alert stopped the run; it can be resumed."""
RANK_LOST = 70
"""A rank ended because another one did; only the process that started the ranks sees it."""
INTERRUPTED = 130
"""Ctrl-C or SIGTERM; unfinished runs can be resumed."""


class SomeFailed(RuntimeError):
    """Some of several runs failed; the others are finished."""
