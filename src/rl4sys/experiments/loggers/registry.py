"""The registry of loggers: the built-in ones and those of plug-ins."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from rl4sys.config import Config, Registry
from rl4sys.experiments.metrics import Logger

_LONGEST_ID = 128
"""The longest id, in characters, that Weights & Biases accepts."""


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """The run that a logger is opened for."""

    directory: Path
    """The run's directory, named after the run. A resumed run has the same one."""
    step: int
    """Steps done so far: 0, or those of the checkpoint. Records of later steps will be logged again."""
    config: Mapping[str, Any]
    """The whole resolved config, as plain values."""

    @property
    def id(self) -> str:
        """The run's name as an id that every service accepts; different names have different ids."""
        plain = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", self.directory.name)
        if plain == self.directory.name and len(plain) <= _LONGEST_ID:
            return plain
        digest = hashlib.sha256(self.directory.name.encode()).hexdigest()[:8]
        return f"{plain[: _LONGEST_ID - 9]}-{digest}"


class Requirement(NamedTuple):
    """A package that a logger imports, and what to install for it."""

    package: str
    install: str
    """Such as `rl4sys[wandb]`."""


class LoggerConfig(Config):
    """Settings of a logger."""

    requires: ClassVar[Requirement | None] = None
    """Checked before a run starts, so that a missing package is no surprise later."""

    @abstractmethod
    def build(self, run: LoggedRun) -> Logger:
        """The logger for a new run, or for the rest of a resumed one."""


LOGGERS: Registry[LoggerConfig] = Registry("logger", LoggerConfig)
register_logger = LOGGERS.register
