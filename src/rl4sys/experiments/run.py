"""A run: trains, saves, resumes."""

from __future__ import annotations

import datetime
import errno
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import torch

from rl4sys.checkpoints import Checkpoints, NoCheckpoint, ReplayRows
from rl4sys.environments import Grade
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.experiments.devices import act_with_one_thread, threads_for
from rl4sys.experiments.loggers import Loggers, open_loggers
from rl4sys.experiments.machine import fingerprint_of_machine
from rl4sys.experiments.metrics import Logger, MetricsFile, Record
from rl4sys.experiments.policy_files import save_policy
from rl4sys.experiments.preflight import check_combination, fit_to_machine
from rl4sys.experiments.process_random import process_random_state, restore_process_random
from rl4sys.experiments.result import Result, fingerprint
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.experiments.tracking import Tracking, evaluation_metrics
from rl4sys.learning import Evaluation
from rl4sys.seeding import Seeds
from rl4sys.state import State, require

_log = logging.getLogger(__name__)


class NotSaved(RuntimeError):
    """The run could not be written, for want of space or for another failure of the disk."""


class Run:
    """One training run in its directory. `step`, `save` and `restore` are all that an orchestrator needs."""

    result: Result | None = None
    """How the run ended, once `train` has returned."""

    def __init__(
        self,
        directory: RunDirectory,
        components: Components,
        facts: Mapping[str, Any],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.directory = directory
        self.components = components
        self.config = components.config
        self._facts = dict(facts)
        self._clock = clock
        self._saved_at: int | None = None
        self._began = (clock(), 0)
        self._tracking = Tracking()
        self._checkpoints = Checkpoints(directory.checkpoints, self.config.training.keep_checkpoints)
        with ExitStack() as resources:
            resources.callback(os.close, directory.hold())
            self._checkpoints.tidy()
            # Before the first weight is drawn: the number of threads changes the bits.
            torch.set_num_threads(self.threads)
            act_with_one_thread()
            self.learner = components.learner()
            self._metrics = MetricsFile(directory.metrics)
            resources.callback(self._metrics.close)
            self.source = components.source(self.learner)
            resources.callback(self.source.close)
            self._resources = resources.pop_all()

    @classmethod
    def create(cls, config: ExperimentConfig, *, allow_fallback: bool = False) -> Run:
        """A new run in a directory of its own. What cannot work is refused before the directory is made."""
        config = fit_to_machine(config, allow_fallback=allow_fallback)
        check_combination(config)
        grade = config.environment.grade(Seeds(Seeds(config.experiment.seed).integer("probe")))
        components = Components(config, torch.device(config.experiment.device), grade)
        facts = {
            "seed": config.experiment.seed,
            "device": config.experiment.device,
            "threads": threads_for(config, components.algorithm().policies.exploit),
            "grade": grade.name,
            "grade_means": grade.value,
            "inexact": [],
            "config": config.digest(),
            **fingerprint_of_machine(),
        }
        directory = RunDirectory.create(config, facts, datetime.datetime.now().astimezone())
        try:
            return cls(directory, components, facts)
        except BaseException:
            shutil.rmtree(directory.path, ignore_errors=True)
            raise

    @classmethod
    def resume(cls, directory: RunDirectory, *, allow_fallback: bool = False, step: int | None = None) -> Run:
        """The run as its newest good checkpoint left it."""
        config = fit_to_machine(load_experiment(directory.config), allow_fallback=allow_fallback)
        facts = directory.read_manifest()
        run = cls(directory, Components(config, torch.device(config.experiment.device), Grade[facts["grade"]]), facts)
        try:
            run.restore(step)
        except BaseException:
            run.close()
            raise
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"best {self.result.best:.1f}, " if self.result and self.result.best is not None else ""
        steps = f"{self.steps:,} of {self.config.training.total_timesteps:,} steps"
        return f"<Run {self.config.name}, seed {self.config.experiment.seed}: {steps}, {state}in {self.directory.path}>"

    @property
    def threads(self) -> int:
        """Threads that torch computes with: chosen once, since another number would change the bits."""
        return int(self._facts["threads"])

    @property
    def inexact(self) -> tuple[str, ...]:
        """Where the run went on, but not exactly, and why."""
        return tuple(self._facts["inexact"])

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.learner.steps

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self.config.training.total_timesteps

    def train(self, loggers: Sequence[Logger] = (), stop: Callable[[], bool] = lambda: False) -> Result:
        """Go on until the end, or until `stop` says so; either way a checkpoint is left and the run is closed."""
        training = self.config.training
        outlets = Loggers([self._metrics, *loggers, *open_loggers(self.config, self.directory.path, self.steps)])
        self._began = (self._clock(), self.steps)
        try:
            if self._saved_at is None:
                self.save()
            while not self.finished and not stop():
                before = self.steps
                self.step()
                improved = False
                if _crossed(before, self.steps, training.log_frequency) or self.finished:
                    outlets.log(Record(self.steps, self._tracking.metrics(self.learner), self._timing()))
                if _crossed(before, self.steps, training.eval_frequency) or self.finished:
                    improved = self._evaluate(outlets)
                if improved or _crossed(before, self.steps, training.checkpoint_frequency):
                    self.save(best=improved)
            if self._saved_at != self.steps:
                self.save()
            self.result = self._conclude()
            return self.result
        finally:
            outlets.close()
            self.close()

    def step(self) -> None:
        """One turn: collect, learn, take note of the episodes that ended."""
        collected = self.source.collect(self.learner.store.newest)
        self._tracking.note_turn(collected.episodes, self.learner.learn(collected.segments))

    def evaluate(self, episodes: int = 20, seed: int = 0) -> Evaluation:
        """How good the newest policy is when it does its best, in environments of its own; also after training."""
        return self.components.evaluate(self.learner, episodes, Seeds(seed))

    def save(self, *, best: bool = False) -> None:
        """Write a checkpoint of everything."""
        offset = self._metrics.offset()
        state = {**self._state(), "metrics_offset": offset, "process_random": process_random_state()}
        with self._writing():
            self._checkpoints.save(self.steps, state, self._replay(), best=best)
        self._saved_at = self.steps

    def restore(self, step: int | None = None) -> None:
        """Go back to the newest good checkpoint, or to that of a given step."""
        try:
            loaded = self._checkpoints.load(step)
        except NoCheckpoint:
            if self._checkpoints.steps():
                raise
            _log.warning("%s has no checkpoint yet: starting from the beginning.", self.directory.path)
            self._metrics.cut(0)
            return
        for reason in loaded.skipped:
            _log.warning("Passed over a damaged checkpoint (%s); using the one of step %d.", reason, loaded.step)
        state: Mapping[str, Any] = loaded.state
        require(state, "learner", "source", "tracking", "metrics_offset", "process_random")
        self.learner.restore(state["learner"])
        if (replay := self._replay()) is not None:
            for first, rows in self._checkpoints.replay_rows(loaded):
                replay.load_rows(first, rows)
        self._metrics.cut(state["metrics_offset"])
        self._tracking.restore(state["tracking"])
        if self._tracking.best_step is not None:
            # A kill may have come between the checkpoint and the link.
            self._checkpoints.mark_best(self._tracking.best_step)
        restore_process_random(state["process_random"])
        self._note_inexact([*self._changes(), *self.source.restore(state["source"])])
        self._saved_at = loaded.step

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the parts of the run. Two runs with equal hashes are equal to the bit."""
        return fingerprint(self._state(), self._replay(), self.directory.metrics)

    def close(self) -> None:
        """Let go of environments, files and the directory. What was not saved is lost."""
        self._resources.close()

    def _state(self) -> dict[str, State]:
        return {
            "learner": self.learner.state(),
            "source": self.source.state(),
            "tracking": self._tracking.state(),
        }

    def _replay(self) -> ReplayRows | None:
        buffer = self.learner.buffer
        return buffer if isinstance(buffer, ReplayRows) else None

    def _timing(self) -> dict[str, float]:
        began, steps = self._began
        elapsed = self._clock() - began
        return {"seconds": elapsed, "steps_per_second": (self.steps - steps) / max(elapsed, 1e-9)}

    def _evaluate(self, outlets: Loggers) -> bool:
        """Evaluate and tell; true if the policy is the best so far."""
        seeds = Seeds(self.components.seeds.integer("evaluation", self.steps))
        outcome = self.components.evaluate(self.learner, self.config.training.num_eval_episodes, seeds)
        outlets.log(Record(self.steps, evaluation_metrics(outcome), self._timing()))
        improved = self._tracking.note_evaluation(outcome, self.steps)
        if improved:
            with self._writing():
                save_policy(self.directory.policies / "best", self.learner)
        return improved

    def _conclude(self) -> Result:
        result = Result(
            steps=self.steps,
            finished=self.finished,
            evaluation=self._tracking.evaluation,
            best=self._tracking.best,
            seconds=self._timing()["seconds"],
            fingerprint=self.fingerprint(),
        )
        with self._writing():
            save_policy(self.directory.policies / "latest", self.learner)
            result.write(self.directory.result)
        return result

    def _changes(self) -> list[str]:
        """What is not as it was when the run began, and may change its bits."""
        now = {**fingerprint_of_machine(), "device": str(self.components.device), "seed": self.config.experiment.seed}
        watched = ("rl4sys", "python", "packages", "cpu", "device", "seed")
        was = self._facts
        changes = [f"{name} was {was[name]}, now {now[name]}" for name in watched if was[name] != now[name]]
        return [*changes, "config.yaml was changed"] if was["config"] != self.config.digest() else changes

    def _note_inexact(self, reasons: Sequence[str]) -> None:
        if reasons:
            self._facts["inexact"] += [f"step {self.steps}: {reason}" for reason in reasons]
            self.directory.write_manifest(self._facts)
            _log.warning("Continuing, not exact: %s", "; ".join(reasons))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Tell a failure of the disk in words that say how to go on."""
        try:
            yield
        except OSError as error:
            advice = "Free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "Repair that"
            raise NotSaved(
                f"The run could not be saved at step {self.steps:,}: {error.strerror or error}. What was saved before "
                f"is intact. {advice}, then go on with: rl4sys resume {self.directory.path}"
            ) from error


def _crossed(before: int, after: int, frequency: int) -> bool:
    """Whether a multiple of the frequency lies in (before, after]."""
    return frequency > 0 and after // frequency > before // frequency
