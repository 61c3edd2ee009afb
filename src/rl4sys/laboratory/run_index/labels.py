"""What people say about a run: tags and notes, kept in the run as `labels.json`."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.file_lock import FileLock
from rl4sys.run_files import CONFIG, LABELS, read_json

_TAG = re.compile(r"[\w.:/@-]+")


class LabelsDamaged(ValueError):
    """What was said about a run cannot be read."""


class WrongTag(ValueError):
    """A tag that could not be written on the command line again."""


class EmptyNote(ValueError):
    """A note that says nothing."""


@dataclass(frozen=True, slots=True)
class Note:
    """One remark."""

    time: str
    text: str


@dataclass(frozen=True, slots=True)
class Labels:
    """Tags in alphabetical order, notes in the order of time."""

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def tagged(self, changes: Sequence[str]) -> Labels:
        """With changes such as `+good`, `good` (the same) and `-bad`."""
        tags = set(self.tags)
        for change in changes:
            tag = change.removeprefix("+") if change.startswith("+") else change.removeprefix("-")
            if not _TAG.fullmatch(tag) or tag.startswith("-"):
                raise WrongTag(f"'{change}' is no tag; write +name to add one and -name to remove it, without spaces.")
            if change.startswith("-"):
                tags.discard(tag)
            else:
                tags.add(tag)
        return Labels(tuple(sorted(tags)), self.notes)

    def noted(self, text: str, now: datetime.datetime) -> Labels:
        """With one more note."""
        if not text.strip():
            raise EmptyNote("A note needs a text; without one, the notes there are would be shown.")
        return Labels(self.tags, (*self.notes, Note(now.isoformat(timespec="seconds"), text)))

    def write(self, run: Path) -> None:
        """Keep them in the run."""
        replace_file(run / LABELS, json.dumps(asdict(self), indent=1, ensure_ascii=False).encode())


def change_labels(run: Path, change: Callable[[Labels], Labels]) -> Labels:
    """Keep what `change` makes of the labels there are; several processes may do so at once, and none is lost."""
    # Not the file itself, which is replaced, nor the directory, which belongs to whoever trains the run.
    with FileLock.acquire(run / CONFIG):
        labels = change(read_labels(run))
        labels.write(run)
    return labels


def read_labels(run: Path) -> Labels:
    """What was kept, if anything was."""
    try:
        values = read_json(run / LABELS)
        return Labels(tuple(values.get("tags", ())), tuple(Note(**note) for note in values.get("notes", ())))
    except (ValueError, TypeError) as error:
        raise LabelsDamaged(
            f"{run / LABELS} is damaged ({error}); mend it, or remove it to begin again without tags and notes."
        ) from error
