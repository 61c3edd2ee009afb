"""Loggers by name: what a plug-in registers to take records elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl4sys.config import Config, Registry
from rl4sys.experiments.metrics import Logger


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """What a logger may know of the run that it is opened for."""

    directory: Path
    """The run's own; its name is that of the run. It is the same again when the run is resumed."""
    step: int
    """Steps that are done: 0, or those of the checkpoint. What was logged after them will come again."""
    config: Mapping[str, Any]
    """The whole resolved config, as plain values."""


class LoggerConfig(Config):
    """Settings of a logger."""

    @abstractmethod
    def build(self, run: LoggedRun) -> Logger:
        """The logger for one run, or for the rest of one that is resumed."""


LOGGERS: Registry[LoggerConfig] = Registry("logger", LoggerConfig)
register_logger = LOGGERS.register
