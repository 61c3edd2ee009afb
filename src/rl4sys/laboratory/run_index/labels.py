"""The labels of a run: tags and notes, stored in the run as `labels.json`."""

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
    """The file with tags and notes cannot be read."""


class WrongTag(ValueError):
    """A tag with characters that are not allowed."""


class EmptyNote(ValueError):
    """A note without text."""


@dataclass(frozen=True, slots=True)
class Note:
    """A text with its time."""

    time: str
    text: str


@dataclass(frozen=True, slots=True)
class Labels:
    """Tags in alphabetical order, notes in chronological order."""

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def tagged(self, changes: Sequence[str]) -> Labels:
        """The labels after changes such as `+good`, `good` (the same) and `-bad`."""
        tags = set(self.tags)
        for change in changes:
            tag = change.removeprefix("+") if change.startswith("+") else change.removeprefix("-")
            if not _TAG.fullmatch(tag) or tag.startswith("-"):
                raise WrongTag(f"'{change}' is not a tag; write +name to add one, -name to remove one, without spaces.")
            if change.startswith("-"):
                tags.discard(tag)
            else:
                tags.add(tag)
        return Labels(tuple(sorted(tags)), self.notes)

    def noted(self, text: str, now: datetime.datetime) -> Labels:
        """The labels with one more note."""
        if not text.strip():
            raise EmptyNote("A note needs a text. Leave it out to show the existing notes.")
        return Labels(self.tags, (*self.notes, Note(now.isoformat(timespec="seconds"), text)))

    def write(self, run: Path) -> None:
        """Store them in the run."""
        replace_file(run / LABELS, json.dumps(asdict(self), indent=1, ensure_ascii=False).encode())


def change_labels(run: Path, change: Callable[[Labels], Labels]) -> Labels:
    """Apply a change to the labels of a run. Changes of several processes at once are all kept."""
    # Not the file itself, which is replaced, nor the directory, whose lock the training process holds.
    with FileLock.acquire(run / CONFIG):
        labels = change(read_labels(run))
        labels.write(run)
    return labels


def read_labels(run: Path) -> Labels:
    """The stored labels; empty if there are none."""
    try:
        values = read_json(run / LABELS)
        return Labels(tuple(values.get("tags", ())), tuple(Note(**note) for note in values.get("notes", ())))
    except (ValueError, TypeError) as error:
        raise LabelsDamaged(
            f"{run / LABELS} is damaged ({error}); repair it, or remove it to start without tags and notes."
        ) from error
