"""Where records go besides the metrics file. A logger is an accessory: it may fail, and training goes on."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rl4sys.experiments.config import ExperimentConfig, LoggingSection
from rl4sys.experiments.loggers.csv import CsvFile
from rl4sys.experiments.loggers.mlflow import Mlflow
from rl4sys.experiments.loggers.registry import LOGGERS, LoggedRun
from rl4sys.experiments.loggers.tensorboard import TensorBoard
from rl4sys.experiments.loggers.wandb import Wandb
from rl4sys.experiments.metrics import Logger, MetricRecord
from rl4sys.run_files import METRICS_TABLE, TENSORBOARD

_log = logging.getLogger(__name__)


class LoggerUnavailable(RuntimeError):
    """A logger that was asked for is not installed."""


class Loggers:
    """Several loggers as one; one that fails is reported once and left out, and training goes on."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self._loggers = list(loggers)

    def log(self, record: MetricRecord) -> None:
        """Hand the record to every logger."""
        for logger in list(self._loggers):
            try:
                logger.log(record)
            except Exception as error:  # whatever a logger raises, the run is worth more
                self._loggers.remove(logger)
                _log.warning("%s failed and is left out from now on: %s", type(logger).__name__, error)

    def close(self) -> None:
        """Close every logger."""
        for logger in self._loggers:
            try:
                logger.close()
            except Exception as error:  # as above
                _log.warning("%s could not be closed: %s", type(logger).__name__, error)


def installed(section: LoggingSection, *, allow_fallback: bool) -> LoggingSection:
    """The loggers that were asked for, if they are installed; with a fallback, those that are."""
    wandb, mlflow = section.wandb, section.mlflow
    if wandb.enabled and not _is_installed("wandb", "logging.wandb.enabled", "wandb", allow_fallback):
        section = section.model_copy(update={"wandb": wandb.model_copy(update={"enabled": False})})
    if mlflow.enabled and not _is_installed("mlflow", "logging.mlflow.enabled", "mlflow", allow_fallback):
        section = section.model_copy(update={"mlflow": mlflow.model_copy(update={"enabled": False})})
    if section.tensorboard and not _is_installed("tensorboard", "logging.tensorboard", "train", allow_fallback):
        section = section.model_copy(update={"tensorboard": False})
    return section


def open_loggers(config: ExperimentConfig, directory: Path, step: int) -> Iterator[Logger]:
    """The loggers that a config asks for; one that cannot start is reported and left out."""
    run = LoggedRun(directory, step, config.model_dump(mode="json"))
    for name, make in _makers(config.logging, run).items():
        try:
            yield make()
        except Exception as error:  # a logger that cannot start is one that failed
            _log.warning("%s could not start and is left out: %s", name, error)


def _makers(section: LoggingSection, run: LoggedRun) -> dict[str, Callable[[], Logger]]:
    """What opens each logger, by the name that messages call it."""
    makers: dict[str, Callable[[], Logger]] = {}
    if section.tensorboard:
        makers["TensorBoard"] = lambda: TensorBoard(run.directory / TENSORBOARD, run.step)
    if section.csv:
        makers["CSV"] = lambda: CsvFile(run.directory / METRICS_TABLE, run.step)
    if section.wandb.enabled:
        makers["Weights & Biases"] = lambda: Wandb(section.wandb, run)
    if section.mlflow.enabled:
        makers["MLflow"] = lambda: Mlflow(section.mlflow, run)
    for number, other in enumerate(section.others, start=1):
        makers[f"logger {number}, '{LOGGERS.name_of(other)}',"] = partial(other.build, run)
    return makers


def _is_installed(package: str, key: str, extra: str, allow_fallback: bool) -> bool:
    if importlib.util.find_spec(package) is not None:
        return True
    if not allow_fallback:
        raise LoggerUnavailable(
            f"{key}: the package '{package}' is not installed. Install it with: pip install 'rl4sys[{extra}]', "
            f"or go on without it: {key}=false (or --allow-fallback)."
        )
    _log.warning("The package '%s' is not installed: going on with %s=false.", package, key)
    return False
