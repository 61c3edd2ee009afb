"""The loop of a training run: between turns it logs, evaluates, records videos, watches alerts and saves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rl4sys.experiments.crash_report import write_crash_report
from rl4sys.experiments.loggers.composite import Loggers, open_loggers
from rl4sys.experiments.metrics import Logger, MetricRecord
from rl4sys.experiments.result import Result
from rl4sys.experiments.run_parts import RunParts
from rl4sys.experiments.run_statistics import evaluation_metrics
from rl4sys.experiments.saved_policies import BEST, LATEST, save_policy
from rl4sys.seeding import Seeds

if TYPE_CHECKING:
    from rl4sys.experiments.run import Run

_log = logging.getLogger(__name__)


class TrainingLoop:
    """Takes the turns of a run, and does what is due after each."""

    def __init__(self, run: Run, parts: RunParts, loggers: Sequence[Logger], clock: Callable[[], float]) -> None:
        self._run, self._parts, self._clock = run, parts, clock
        opened = open_loggers(run.config, run.directory.path, run.steps)
        self._loggers = Loggers([parts.metrics, parts.hash_log, parts.episode_log, *loggers, *opened])
        self._began = (clock(), run.steps)

    def turn(self) -> None:
        """One step of the run, and what is due after it."""
        run, parts, training = self._run, self._parts, self._run.config.training
        before = run.steps
        run.step()
        improved = False
        records = []
        if self._is_due(before, training.log_frequency) or run.finished:
            records.append(self._record())
            self._loggers.log(records[-1])
        if self._is_due(before, training.eval_frequency) or run.finished:
            for evaluation in self._evaluate():
                records.append(evaluation)
                self._loggers.log(evaluation)
                improved = self._keep_best()
        if training.video_frequency and (run.finished or self._is_due(before, training.video_frequency)):
            parts.videos.record(run.learner)
        # Before the checkpoint, which has to know what was decided; then what was best may be gone.
        if parts.monitor.note(records):
            improved = False
        if improved or self._is_due(before, training.checkpoint_frequency):
            run.save(best=improved, is_scheduled=True)

    def conclude(self) -> Result:
        """The result of the run, written into its directory with its newest policy."""
        run, statistics = self._run, self._parts.statistics
        result = Result(
            steps=run.steps,
            finished=run.finished or run.solved is not None,
            evaluation=statistics.evaluation,
            best=statistics.best,
            seconds=self._timing()["seconds"],
            fingerprint=run.fingerprint(),
            solved=None if run.finished else run.solved,
        )
        save_policy(run.directory, run.learner, run.config.environment, LATEST)
        with run.directory.writing(run.steps):
            result.write(run.directory.result)
        return result

    def close(self) -> None:
        """Let callbacks finish, one of which may fail without costing the run its result; close the loggers."""
        try:
            self._parts.callbacks.on_end(self._run)
        except Exception as error:
            _log.warning("A callback failed at the end of the run: %r", error)
        self._loggers.close()

    def _is_due(self, before: int, frequency: int) -> bool:
        """Whether a multiple of the frequency lies in (before, now]."""
        return frequency > 0 and self._run.steps // frequency > before // frequency

    def _timing(self) -> dict[str, float]:
        began, steps = self._began
        elapsed = self._clock() - began
        return {"seconds": elapsed, "steps_per_second": (self._run.steps - steps) / max(elapsed, 1e-9)}

    def _record(self) -> MetricRecord:
        metrics = self._parts.statistics.metrics(self._run.learner) | self._parts.monitor.metrics()
        return MetricRecord(self._run.steps, metrics, self._timing())

    def _evaluate(self) -> list[MetricRecord]:
        """Evaluate, and take note of it; the last evaluation may fail, since nothing depends on it."""
        run, parts = self._run, self._parts
        seeds = Seeds(run.components.seeds.integer("evaluation", run.steps))
        episodes = run.config.training.num_eval_episodes
        try:
            outcome = run.components.evaluate(run.learner, episodes, seeds, parts.evaluation_environments)
        except Exception as error:
            if not run.finished:
                raise
            write_crash_report(run.directory.path, run.steps, error)
            _log.warning("The run is finished, but its last evaluation failed: %r, %s", error, error.__notes__[-1])
            return []
        parts.statistics.note_evaluation(outcome, run.steps)
        parts.callbacks.on_evaluation(run, outcome)
        return [MetricRecord(run.steps, evaluation_metrics(outcome), self._timing())]

    def _keep_best(self) -> bool:
        """Keep the policy if it is the best so far, and say whether it is."""
        if self._parts.statistics.best_step != self._run.steps:
            return False
        save_policy(self._run.directory, self._run.learner, self._run.config.environment, BEST)
        return True
