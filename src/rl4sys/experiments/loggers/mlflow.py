"""MLflow: a server, or files beside the run."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field

from rl4sys.config import flat
from rl4sys.experiments.loggers.registry import LoggedRun, LoggerConfig, Requirement, register_logger
from rl4sys.experiments.metrics import MetricRecord, flat_record

_RUN_TAG = "rl4sys.run"
"""The tag that a resumed run finds itself by."""
_MOST_PARAMETERS = 100
"""That MLflow takes in one call."""
_LONGEST_PARAMETER = 500


@register_logger("mlflow")
class MlflowConfig(LoggerConfig):
    """MLflow."""

    requires: ClassVar[Requirement | None] = Requirement("mlflow", "rl4sys[mlflow]")

    experiment: str = Field("rl4sys", min_length=1)
    """The experiment of MLflow that the run belongs to; created if it does not exist."""
    tracking_uri: str | None = None
    """The server or store, such as `http://localhost:5000` or `file:/data/mlruns`. If not given, that of the variable
    MLFLOW_TRACKING_URI, or else files in `mlruns/` beside the run."""
    tags: dict[str, str] = {}
    """Tags of the run."""

    def build(self, run: LoggedRun) -> MlflowLogger:
        """Create the run in MLflow, or continue the one with the same id."""
        return MlflowLogger(self, run)


class MlflowLogger:
    """One run of MLflow, named after the run's directory. A resumed run continues as the same run there.

    MLflow would store a point twice that is logged twice, so points that it has are left out.
    """

    def __init__(self, config: MlflowConfig, run: LoggedRun, clock: Callable[[], float] = time.time) -> None:
        uri = config.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        uri = uri or f"file:{(run.directory.parent / 'mlruns').resolve()}"
        if uri.startswith("file:") or "://" not in uri:
            # MLflow 3 uses files only with this variable; they need no server and no database.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.entities import Metric
        from mlflow.tracking import MlflowClient

        self._metric, self._clock = Metric, clock
        self._client = MlflowClient(tracking_uri=uri)
        self._total = int(run.config["training"]["total_timesteps"])
        self._last_step = run.step
        self._logged: dict[str, int] = {}
        experiment = self._client.get_experiment_by_name(config.experiment)
        place = experiment.experiment_id if experiment else self._client.create_experiment(config.experiment)
        found = self._client.search_runs([place], f"tags.`{_RUN_TAG}` = '{run.id}'", max_results=1)
        if found:
            self._id = found[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
            self._logged = {name: self._last(name) for name in found[0].data.metrics}
        else:
            tags = {**config.tags, _RUN_TAG: run.id}
            self._id = self._client.create_run(place, tags=tags, run_name=run.directory.name).info.run_id
            self._log_config(run.config)

    def log(self, record: MetricRecord) -> None:
        """Send every metric that is newer than what MLflow has."""
        now = int(self._clock() * 1_000)
        values = {_allowed(name): value for name, value in flat_record(record).items()}
        new = {name: value for name, value in values.items() if record.step > self._logged.get(name, -1)}
        metrics = [self._metric(name, value, now, record.step) for name, value in new.items()]
        if metrics:
            self._client.log_batch(self._id, metrics=metrics)
        self._logged |= dict.fromkeys(new, record.step)
        self._last_step = max(self._last_step, record.step)

    def close(self) -> None:
        """Mark the run as finished, or as killed."""
        self._client.set_terminated(self._id, "FINISHED" if self._last_step >= self._total else "KILLED")

    def _last(self, name: str) -> int:
        return max((point.step for point in self._client.get_metric_history(self._id, name)), default=-1)

    def _log_config(self, config: Mapping[str, Any]) -> None:
        from mlflow.entities import Param

        values = (Param(_allowed(".".join(place)), str(value)[:_LONGEST_PARAMETER]) for place, value in flat(config))
        while batch := list(itertools.islice(values, _MOST_PARAMETERS)):
            self._client.log_batch(self._id, params=batch)


def _allowed(name: str) -> str:
    """MLflow takes letters, digits, and _ - . : / and spaces in names."""
    return re.sub(r"[^\w\-.:/ ]", "_", name)
