"""What is kept of an error that ends a run: its traceback in the run directory, and where in whose code it happened."""

from __future__ import annotations

import datetime
import traceback
from pathlib import Path

import gymnasium

import rl4sys
from rl4sys.run_files import ERROR

_OURS = Path(rl4sys.__file__).parent
_FOREIGN = (_OURS, Path(gymnasium.__file__).parent)
"""Code that calls environments, and is rarely to blame for what they raise."""


def place_of(error: BaseException) -> str | None:
    """File and line of the innermost frame in code that is neither ours nor Gymnasium's; None if there is none.

    Of errors that were raised while others were handled, the last one that has such a frame counts.
    """
    link: BaseException | None = error
    while link is not None:
        if (place := _place_in(link)) is not None:
            return place
        link = link.__cause__ or link.__context__
    return None


def _place_in(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(place in Path(frame.filename).parents for place in _FOREIGN)]
    # The outermost frame is the caller's own program, which did nothing but train.
    inner = [frame for frame in own if frames.index(frame) > 0]
    return f"{inner[-1].filename}:{inner[-1].lineno}" if inner else None


def write_crash_report(run: Path, step: int, error: BaseException) -> None:
    """Add the traceback to the file of a run, and a note about both to the error."""
    path = run / ERROR
    now = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    lines = "".join(traceback.format_exception(error))
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{now}, step {step:,}\n{lines}\n")
    place = place_of(error)
    error.add_note(f"{f'at {place}; ' if place else ''}the traceback is in {path}")
