"""Tells a failure of the disk in words that say how to go on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NotSaved(RuntimeError):
    """The run could not be written, for want of space or for another failure of the disk."""


@contextmanager
def writing(run: Path, step: int) -> Iterator[None]:
    """Around whatever a run writes that it cannot do without."""
    try:
        yield
    except OSError as error:
        advice = "Free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "Repair that"
        raise NotSaved(
            f"The run could not be saved at step {step:,}: {error.strerror or error}. What was saved before "
            f"is intact. {advice}, then go on with: rl4sys resume {run}"
        ) from error
