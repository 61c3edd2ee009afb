"""Migrations of older config versions, so that old experiments keep loading."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from rl4sys.config.errors import ConfigError, shown

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
