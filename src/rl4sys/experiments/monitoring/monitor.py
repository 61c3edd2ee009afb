"""Monitors a run after every turn: alerts, rollbacks, and metrics about what went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rl4sys.checkpoints import Checkpoints
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.debugging import FailedUpdates
from rl4sys.experiments.metrics import MetricRecord
from rl4sys.experiments.monitoring.alerts import Alerts
from rl4sys.experiments.monitoring.events import Events
from rl4sys.experiments.monitoring.machine_metrics import MachineMetrics
from rl4sys.experiments.monitoring.recovery import Recovery
from rl4sys.learning import Diverged, Learner
from rl4sys.run_files import DEBUG
from rl4sys.state import State, require


class Monitor:
    """The alerts and rollbacks of one run."""

    stopped: str | None = None
    """Why an alert has stopped the run, if one has."""
    solved: str | None = None
    """Why an alert has ended the run as a success, if one has."""

    def __init__(self, config: ExperimentConfig, directory: Path, checkpoints: Checkpoints, learner: Learner) -> None:
        self._learner = learner
        self._events = Events(directory / "events.jsonl")
        self._alerts = Alerts(config.alerts, MachineMetrics(directory), self._events)
        self._recovery = Recovery(checkpoints, config.stability, self._events)
        self.failures = FailedUpdates(directory / DEBUG, learner, self._events)
        """Updates that were not finite."""
        learner.on_skip = self.failures.keep
        self._splitter = learner.algorithm.train_state.splitter

    def note(self, records: Sequence[MetricRecord]) -> bool:
        """Look at the records of a turn and do what they ask for; true if the run was rolled back."""
        rolled_back = [self._check(record) for record in records]
        return any(rolled_back)

    def _check(self, record: MetricRecord) -> bool:
        decision = self._alerts.note(record)
        if decision.stop is not None:
            self.stopped = decision.stop
            self._events.note(record.step, "stop", reason=decision.stop)
        if decision.solved is not None:
            self.solved = decision.solved
            self._events.note(record.step, "solved", reason=decision.solved)
        if decision.rollback is not None:
            self._recovery.roll_back(self._learner, f"Alert: {decision.rollback}.", before=decision.since)
        return decision.rollback is not None

    def recover(self, error: Diverged) -> None:
        """Roll back after learning has diverged, or fail if that was done too often."""
        self._recovery.roll_back(self._learner, str(error))

    def metrics(self) -> dict[str, float]:
        """What went wrong so far, if anything did."""
        found = {"train/skipped_updates": self._learner.skips.total, "train/rollbacks": self._recovery.rollbacks}
        parts = self._splitter.parts
        return {name: float(count) for name, count in found.items() if count} | (
            {"train/batch_parts": float(parts)} if parts > 1 else {}
        )

    def state(self, *, is_scheduled: bool) -> State:
        """What later decisions depend on. A run goes back only to scheduled checkpoints: they are there in any case."""
        return {
            "is_scheduled": is_scheduled,
            "alerts": self._alerts.state(),
            "recovery": self._recovery.state(),
            "batch_parts": self._splitter.parts,
        }

    def restore(self, state: State) -> None:
        """Continue there."""
        require(state, "is_scheduled", "alerts", "recovery", "batch_parts")
        # Before anything is computed: the number of parts changes the bits.
        parts = state["batch_parts"]
        # Earlier versions counted for each network.
        self._splitter.parts = max(parts, default=1) if isinstance(parts, list) else int(parts)
        self._alerts.restore(state["alerts"])
        self._recovery.restore(state["recovery"])

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._alerts.close()
