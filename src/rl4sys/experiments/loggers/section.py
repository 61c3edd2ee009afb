"""The section `logging` of an experiment: which loggers a run has."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from typing import Annotated, Any

from rl4sys.config import Config
from rl4sys.experiments.loggers.files import CsvConfig, TensorBoardConfig
from rl4sys.experiments.loggers.mlflow import MlflowConfig
from rl4sys.experiments.loggers.registry import LOGGERS, LoggerConfig
from rl4sys.experiments.loggers.wandb import WandbConfig

_log = logging.getLogger(__name__)


class LoggerUnavailable(RuntimeError):
    """The package of a logger is not installed."""


class WandbSection(WandbConfig):
    """Weights & Biases."""

    enabled: bool = False
    """Send metrics to Weights & Biases; needs the extra `rl4sys[wandb]`."""


class MlflowSection(MlflowConfig):
    """MLflow."""

    enabled: bool = False
    """Send metrics to MLflow; needs the extra `rl4sys[mlflow]`."""


class LoggingSection(Config):
    """Where metrics go, besides `metrics.jsonl`."""

    terminal: bool = True
    """A live display, or plain lines where there is no terminal."""
    tensorboard: bool = True
    """Event files in the run's `tensorboard/`."""
    csv: bool = False
    """The run's `metrics.csv`: one row per record, one column per metric."""
    wandb: WandbSection = WandbSection()
    """Weights & Biases."""
    mlflow: MlflowSection = MlflowSection()
    """MLflow."""
    others: tuple[Annotated[LoggerConfig, LOGGERS], ...] = ()
    """Further loggers, such as those of plug-ins, each by its name with its settings."""

    def loggers(self) -> Iterator[tuple[str, LoggerConfig]]:
        """The settings of every logger that is switched on, each with the key of its switch."""
        if self.tensorboard:
            yield "tensorboard", TensorBoardConfig()
        if self.csv:
            yield "csv", CsvConfig()
        if self.wandb.enabled:
            yield "wandb.enabled", WandbConfig(**self.wandb.model_dump(exclude={"enabled"}))
        if self.mlflow.enabled:
            yield "mlflow.enabled", MlflowConfig(**self.mlflow.model_dump(exclude={"enabled"}))
        for place, other in enumerate(self.others):
            yield f"others.{place}", other

    def installed(self, *, allow_fallback: bool) -> LoggingSection:
        """The section without loggers whose package is missing; `LoggerUnavailable` unless a fallback is allowed."""
        values: dict[str, Any] = dict(self)
        for key, logger in self.loggers():
            if not _is_installed(logger, f"logging.{key}", allow_fallback=allow_fallback):
                name, _, _ = key.partition(".")
                match values[name]:
                    case WandbSection() | MlflowSection() as section:
                        values[name] = section.model_copy(update={"enabled": False})
                    case tuple() as others:
                        values[name] = tuple(other for other in others if other is not logger)
                    case _:
                        values[name] = False
        return self.model_copy(update=values)


def _is_installed(logger: LoggerConfig, key: str, *, allow_fallback: bool) -> bool:
    needed = logger.requires
    if needed is None or importlib.util.find_spec(needed.package) is not None:
        return True
    if not allow_fallback:
        switch = "remove it" if key.startswith("logging.others") else f"{key}=false"
        raise LoggerUnavailable(
            f"{key}: the package '{needed.package}' is not installed. Install it with: pip install '{needed.install}', "
            f"or train without this logger: {switch} (or --allow-fallback)."
        )
    _log.warning("%s: the package '%s' is not installed; training without this logger.", key, needed.package)
    return False
