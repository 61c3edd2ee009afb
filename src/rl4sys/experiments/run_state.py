"""What a run saves in a checkpoint, and how it continues from one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rl4sys.checkpoints import Checkpoints, LoadedCheckpoint, ReplayRows
from rl4sys.experiments.components import Source
from rl4sys.experiments.episode_log import EpisodeLog
from rl4sys.experiments.hash_log import HashLog
from rl4sys.experiments.metrics import MetricsFile
from rl4sys.experiments.monitoring.monitor import Monitor
from rl4sys.experiments.ranks.leader import Leader
from rl4sys.experiments.result import fingerprint
from rl4sys.experiments.run_statistics import RunStatistics
from rl4sys.learning import Learner
from rl4sys.policy import NUMPY
from rl4sys.state import State, require

_BESIDE = ("trail", "watch", "process_random", "episodes", "kernels")
_log = logging.getLogger(__name__)


class Restored(NamedTuple):
    """The checkpoint that a run continues from."""

    step: int
    inexact: Sequence[str]
    """Why its environments do not continue exactly, if they do not."""


@dataclass(frozen=True, slots=True)
class RunState:
    """The parts of a run that later steps depend on, saved and restored together."""

    checkpoints: Checkpoints
    learner: Learner
    source: Source
    statistics: RunStatistics
    metrics: MetricsFile
    hash_log: HashLog
    monitor: Monitor
    leader: Leader
    episodes: EpisodeLog
    kernels: str
    """The kernel set that runs the policy."""

    def save(self, step: int, *, best: bool, is_scheduled: bool, was_collecting: bool) -> None:
        """Write a checkpoint of everything; one that interrupted collection is without its environments."""
        self.leader.require_equal(self.learner.store.newest.blob)
        beside = {
            "metrics_offset": self.metrics.offset(),
            "trail": self.hash_log.state(),
            "process_random": self.leader.process_random(),
            "episodes": self.episodes.state(),
            "kernels": self.kernels,
        }
        state = {**self._parts(), **beside, "watch": self.monitor.state(is_scheduled=is_scheduled)}
        if was_collecting:
            # Environments that were interrupted cannot be saved: their episodes begin again.
            state["source"] = {}
        self.checkpoints.save(step, state, self._replay(), best=best)

    def restore(self, step: int | None = None) -> Restored:
        """Continue from the newest good checkpoint, or from that of a given step."""
        loaded = self.checkpoints.load(step)
        for reason in loaded.skipped:
            _log.warning("Skipped a damaged checkpoint (%s); using the one of step %d.", reason, loaded.step)
        # Checkpoints of older versions have no hash log, no monitor and no log of episodes, and are numpy's.
        older = {"trail": None, "watch": None, "episodes": None, "kernels": NUMPY}
        state: Mapping[str, Any] = {**older, **loaded.state}
        require(state, "learner", "source", "tracking", "metrics_offset", *_BESIDE)
        self._restore_learner(state["learner"], loaded)
        self.metrics.cut(state["metrics_offset"])
        self.hash_log.restore(state["trail"])
        self.statistics.restore(state["tracking"])
        self.episodes.restore(state["episodes"])
        if state["watch"] is not None:
            self.monitor.restore(state["watch"])
            self.leader.copy_parts(self.learner.algorithm.train_state.splitter.parts)
        if self.statistics.best_step is not None:
            # A kill may have come between the checkpoint and the link.
            self.checkpoints.mark_best(self.statistics.best_step)
        self.leader.restore_process_random(state["process_random"])
        if not state["source"]:
            return Restored(loaded.step, ["an error interrupted the episodes, which begin again"])
        return Restored(loaded.step, [*self.source.restore(state["source"]), *self._other_kernels(state["kernels"])])

    def _other_kernels(self, before: str) -> list[str]:
        return [] if before == self.kernels else [f"the kernel set was {before}, now {self.kernels}"]

    def start_over(self) -> None:
        """Forget what was written before the first checkpoint."""
        self.metrics.cut(0)
        self.hash_log.begin()
        self.episodes.restore({"episodes": 0})

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the parts. Two runs with equal hashes are equal to the bit."""
        return fingerprint(self._parts(), self._replay(), self.metrics.path)

    def _restore_learner(self, state: Mapping[str, Any], loaded: LoadedCheckpoint) -> None:
        """Restore it here and on the other ranks, with the rows of its replay."""
        self.learner.restore(state)
        self.leader.copy_learner(state)
        if (replay := self._replay()) is not None:
            for first, rows in self.checkpoints.replay_rows(loaded):
                replay.load_rows(first, rows)
                self.leader.copy_rows(first, rows)

    def _parts(self) -> dict[str, State]:
        return {
            "learner": self.learner.state(),
            "source": self.source.state(),
            "tracking": self.statistics.state(),
        }

    def _replay(self) -> ReplayRows | None:
        buffer = self.learner.buffer
        return buffer if isinstance(buffer, ReplayRows) else None
