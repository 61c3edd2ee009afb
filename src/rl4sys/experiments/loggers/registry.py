"""Loggers by name: what a plug-in registers to take records elsewhere."""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl4sys.config import Config, Registry
from rl4sys.experiments.metrics import Logger

_LONGEST_ID = 128
"""Characters that Weights & Biases takes."""


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """What a logger may know of the run that it is opened for."""

    directory: Path
    """The run's own; its name is that of the run. It is the same again when the run is resumed."""
    step: int
    """Steps that are done: 0, or those of the checkpoint. What was logged after them will come again."""
    config: Mapping[str, Any]
    """The whole resolved config, as plain values."""

    @property
    def id(self) -> str:
        """The run's name in letters that every service takes, no longer than they allow; no two names share one."""
        plain = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", self.directory.name)
        if plain == self.directory.name and len(plain) <= _LONGEST_ID:
            return plain
        digest = hashlib.sha256(self.directory.name.encode()).hexdigest()[:8]
        return f"{plain[: _LONGEST_ID - 9]}-{digest}"


class LoggerConfig(Config):
    """Settings of a logger."""

    @abstractmethod
    def build(self, run: LoggedRun) -> Logger:
        """The logger for one run, or for the rest of one that is resumed."""


LOGGERS: Registry[LoggerConfig] = Registry("logger", LoggerConfig)
register_logger = LOGGERS.register
