"""Prepares a launch for another machine, and brings its run back."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.laboratory.trials.launcher import Reported, TrialLaunch
from rl4sys.laboratory.trials.trial import TRAIN_RANK
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
    def parts(self) -> list[Mapping[str, Any]]:
        """The values of its trial, or of each seed of a study's trial."""
        values = self.launch.values
        return list(values["parts"]) if "parts" in values else [values]

    @property
    def is_stored(self) -> bool:
        """Whether its runs are kept in storage, and not in a directory that all machines see."""
        return self.parts[0]["storage"] is not None

    def order(self, rank: Mapping[str, Any] | None = None) -> str:
        """The order for a `TrialHost`, as JSON; for one of several ranks with its `place` and `address`."""
        values = json.loads(json.dumps(dict(self.launch.values)))
        for part in values.get("parts", [values]):
            self._send_away(part)
        directory = str(self.launch.directory.resolve())
        launch = {"key": self.launch.key, "task": self.launch.task, "values": values, "directory": directory}
        is_apart = self.is_stored
        if rank is not None:
            launch |= {"task": TRAIN_RANK, "values": values | rank}
            # Only rank 0 writes into the run, and prints beside it.
            is_apart = is_apart or rank["place"]["rank"] > 0
        return json.dumps({"launch": launch, "is_apart": is_apart})

    def _send_away(self, values: dict[str, Any]) -> None:
        """Change the values of a trial for another machine."""
        experiment = values["config"]["experiment"]
        experiment["threads"] = experiment["threads"] or self.threads
        values["is_elsewhere"] = True
        if self.is_stored:
            # Seeds of one trial have directories of their own.
            experiment["directory"], values["resume"] = f"{RUNS}/seed{experiment['seed']}", True
            return
        experiment["directory"] = str(Path(experiment["directory"]).resolve())
        # A run that has begun is named, so that another machine does not start a second one.
        values["run"] = self.run
        output = None if self.run is not None else values["output"]
        values["output"] = None if output is None else str(Path(output).resolve())

    def translate(self, report: Reported) -> Reported:
        """A report with the paths of this machine."""
        if "run" not in report.values:
            return report
        self.run = str(report.values["run"])
        if not self.is_stored:
            return report
        parent = Path(self.launch.values["config"]["experiment"]["directory"])
        values: dict[str, Any] = {**report.values, "run": str(parent / Path(self.run).name)}
        values.pop("output", None)
        return Reported(report.key, values)

    def bring_back(self) -> None:
        """Copy the runs from storage, as far as they got."""
        if not self.is_stored:
            return
        for part in self.parts:
            stored = StoredRun(open_storage(part["storage"]))
            contents = stored.contents()
            if contents is not None and contents.files:
                stored.fetch(Path(part["config"]["experiment"]["directory"]))
        if self.launch.is_temporary:
            with contextlib.suppress(OSError):
                self.launch.directory.rmdir()
