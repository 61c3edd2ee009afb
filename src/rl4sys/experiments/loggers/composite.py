"""Several loggers as one. A logger may fail without harm: training continues without it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.loggers.registry import LOGGERS, LoggedRun
from rl4sys.experiments.metrics import Logger, MetricRecord

_log = logging.getLogger(__name__)


class Loggers:
    """Hands every record to several loggers; one that fails is reported once and left out."""

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


def open_loggers(config: ExperimentConfig, directory: Path, step: int) -> Iterator[Logger]:
    """The loggers of a config; one that cannot start is reported and left out."""
    run = LoggedRun(directory, step, config.model_dump(mode="json"))
    for _, logger in config.logging.loggers():
        try:
            yield logger.build(run)
        except Exception as error:  # a logger that cannot start is one that failed
            _log.warning("The logger '%s' could not start and is left out: %s", LOGGERS.name_of(logger), error)
