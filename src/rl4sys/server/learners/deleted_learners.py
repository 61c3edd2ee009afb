"""Directories of learners that were deleted or reset: moved aside, so that an operator's mistake can be undone."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.failpoints import failpoint
from rl4sys.server.learners.learner_setup import is_learner

_DELETED = "deleted"
_NEW = ".new"


def set_aside(data: Path, name: str, now: float) -> Path:
    """Move the directory of a learner to `deleted`, with the time in its name; returns where it is."""
    make_directory(data / _DELETED, mode=0o700)
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    taken = set(os.listdir(data / _DELETED))
    names = (f"{name}-{stamp}" + (f"-{count}" if count else "") for count in range(len(taken) + 1))
    aside = data / _DELETED / next(each for each in names if each not in taken)
    (data / "learners" / name).rename(aside)
    sync_directory(data / "learners")
    sync_directory(data / _DELETED)
    return aside


def purge(aside: Path) -> None:
    """Delete what was set aside."""
    shutil.rmtree(aside)
    sync_directory(aside.parent)


def successor_place(data: Path, name: str) -> Path:
    """An empty directory for a learner that will take the place of another, or of none."""
    place = data / _DELETED / f"{name}{_NEW}"
    shutil.rmtree(place, ignore_errors=True)
    make_directory(place, mode=0o700)
    return place


def take_place(data: Path, place: Path) -> Path:
    """Give a complete directory from `successor_place` its name among the learners."""
    sync_directory(place)
    final = data / "learners" / place.name.removesuffix(_NEW)
    failpoint("before successor rename")
    place.rename(final)
    sync_directory(final.parent)
    failpoint("after successor rename")
    return final


def finish_interrupted(data: Path) -> None:
    """After a crash: a complete successor takes the place that was vacated for it; other remains are removed."""
    for place in (data / _DELETED).glob(f"*{_NEW}"):
        if is_learner(place) and not (data / "learners" / place.name.removesuffix(_NEW)).exists():
            take_place(data, place)
        else:
            shutil.rmtree(place, ignore_errors=True)
