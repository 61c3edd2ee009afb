"""How commands end, in numbers: the same for all of them. 0 is: done, and the answer is yes."""

from __future__ import annotations

NO = 1
"""Done, and the answer is no: something differs, or some of several runs failed."""
TROUBLE = 2
"""It could not be done: an error, or a command that makes no sense."""
STOPPED = 3
"""An alert stopped the run; it can be resumed."""
INTERRUPTED = 130
"""Ctrl-C, or SIGTERM; what was begun can be resumed."""


class SomeFailed(RuntimeError):
    """Some of several runs failed; the others are finished."""
