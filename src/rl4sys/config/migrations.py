"""Migrations of older config versions: old experiments keep loading, and files can be rewritten with a backup."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.config.errors import ConfigError, shown
from rl4sys.config.files import read_file

CONFIG_VERSION = 1
"""Raise it, and add a migration from the old number, when a config that loads today would no longer do so."""

VERSION_KEY = "config_version"

Step = Callable[[dict[str, Any]], dict[str, Any]]


class Migrations:
    """The steps from each version of the config format to the next."""

    def __init__(self, current: int) -> None:
        self.current = current
        self._steps: dict[int, Step] = {}

    def register(self, from_version: int) -> Callable[[Step], Step]:
        """The decorated function turns a config of this version into one of the next, in place or not."""

        def remember(step: Step) -> Step:
            if not 1 <= from_version < self.current:
                raise ValueError(f"There is no step from version {from_version}: versions are 1 to {self.current}.")
            if from_version in self._steps:
                raise ValueError(
                    f"Version {from_version} already has a step: {self._steps[from_version].__qualname__}."
                )
            self._steps[from_version] = step
            return step

        return remember

    def migrate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The config as it is written today, with its version. Without one it is taken for version 1."""
        values = copy.deepcopy(dict(raw))
        version = self._version(values.pop(VERSION_KEY, 1))
        for old in range(version, self.current):
            if old not in self._steps:
                raise ConfigError(f"{VERSION_KEY}: there is no migration from version {old} to {old + 1}")
            values = self._steps[old](values)
        return {VERSION_KEY: self.current, **values}

    def _version(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{VERSION_KEY}: got {shown(value)}; expected a whole number from 1 to {self.current}")
        if value > self.current:
            raise ConfigError(
                f"{VERSION_KEY}: got {value}, but this rl4sys knows only versions up to {self.current}; upgrade rl4sys"
            )
        return value


MIGRATIONS = Migrations(CONFIG_VERSION)
migration = MIGRATIONS.register
migrate = MIGRATIONS.migrate


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
