"""Prepares a launch for another machine, and brings its run back."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

from rl4sys.laboratory.trials.launcher import Reported, TrialLaunch
from rl4sys.laboratory.trials.trial_host import RUNS
from rl4sys.storage import StoredRun, open_storage


@dataclasses.dataclass(slots=True)
class DistantLaunch:
    """A launch that runs elsewhere: its order, and what is known of its run."""

    launch: TrialLaunch
    threads: int
    losses: int = 0
    """How often its process or its machine was lost."""
    run: str | None = None
    """The run as the other machine calls it, once there is one."""

    @property
    def url(self) -> str | None:
        """Where its run is kept, if that is not a directory that all machines see."""
        url: str | None = self.launch.values["storage"]
        return url

    def order(self) -> str:
        """The order for a `TrialHost`, as JSON."""
        values = json.loads(json.dumps(dict(self.launch.values)))
        experiment = values["config"]["experiment"]
        experiment["threads"] = experiment["threads"] or self.threads
        # The order that created the run says where it is, so that another machine does not start a second one.
        values |= {"is_elsewhere": True, "run": None if self.url else self.run}
        directory = self.launch.directory.resolve()
        if self.url is None:
            experiment["directory"] = str(Path(experiment["directory"]).resolve())
            output = None if self.run is not None else values["output"]
            values["output"] = None if output is None else str(Path(output).resolve())
        else:
            experiment["directory"], values["resume"] = RUNS, True
        launch = {"key": self.launch.key, "task": self.launch.task, "values": values, "directory": str(directory)}
        return json.dumps({"launch": launch, "threads": self.threads})

    def translate(self, report: Reported) -> Reported:
        """A report with the paths of this machine."""
        if "run" not in report.values:
            return report
        self.run = report.values["run"]
        if self.url is None:
            return report
        values: dict[str, Any] = {**report.values, "run": str(self._parent / Path(self.run).name)}
        values.pop("output", None)
        return Reported(report.key, values)

    def bring_back(self) -> None:
        """Copy the run from storage, as far as it got."""
        if self.url is not None and self.run is not None:
            StoredRun(open_storage(self.url)).fetch(self._parent)
        if self.launch.is_temporary and self.url is not None:
            with contextlib.suppress(OSError):
                self.launch.directory.rmdir()

    @property
    def _parent(self) -> Path:
        return Path(self.launch.values["config"]["experiment"]["directory"])
