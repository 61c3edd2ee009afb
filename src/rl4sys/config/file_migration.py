"""Rewrites a config file in the current format and keeps a backup."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.config.errors import ConfigError
from rl4sys.config.files import read_file
from rl4sys.config.migrations import MIGRATIONS, VERSION_KEY, Migrations


@dataclass(frozen=True, slots=True)
class Change:
    """A config file, and its text in the current format."""

    path: Path
    was: int
    """The version of the file; 1 if it names none."""
    version: int
    """The current version."""
    text: str

    @property
    def is_needed(self) -> bool:
        """Whether the file is of an older version."""
        return self.was != self.version


def migrated(path: Path, migrations: Migrations = MIGRATIONS) -> Change:
    """The file in the current format; `extends` stays as it is, since each file is migrated by itself."""
    values = read_file(path)
    parents: Mapping[str, object] = {"extends": values.pop("extends")} if "extends" in values else {}
    try:
        new = {**parents, **migrations.migrate(values)}
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    is_json = path.suffix.lower() == ".json"
    text = json.dumps(new, indent=1) + "\n" if is_json else yaml.safe_dump(new, sort_keys=False, allow_unicode=True)
    return Change(path, values.get(VERSION_KEY, 1), migrations.current, text)


def rewrite(change: Change) -> Path:
    """Write the new text under the file's name; returns where the old one is kept."""
    backup = _free(change.path.with_name(f"{change.path.name}.v{change.was}"))
    shutil.copy2(change.path, backup)
    replace_file(change.path, change.text.encode())
    return backup


def _free(path: Path) -> Path:
    """A name that is not taken: earlier backups are not overwritten."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
