"""A run: trains, saves, resumes."""

from __future__ import annotations

import datetime
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from rl4sys.algorithms import Algorithm
from rl4sys.checkpoints import NoCheckpoint
from rl4sys.config import ConfigError, Overrides
from rl4sys.config.module_copies import changed_modules
from rl4sys.environments import Grade
from rl4sys.experiments.callbacks import Callback
from rl4sys.experiments.changed_settings import ChangedSettings, changed_settings
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.crash_report import write_crash_report
from rl4sys.experiments.debugging import DebugMode
from rl4sys.experiments.manifest import UNPLANNED, changes_since, unplanned_manifest
from rl4sys.experiments.metrics import Logger, metrics_table
from rl4sys.experiments.policies.acting_policy import ActingPolicy
from rl4sys.experiments.preflight import fit_to_machine
from rl4sys.experiments.result import Result
from rl4sys.experiments.run_directory import NotSaved, RunDirectory, directory_for_runs
from rl4sys.experiments.run_parts import open_run
from rl4sys.experiments.run_plan import RUNTIME_KEY, kernels_for, plan_run, recorded_kernels
from rl4sys.experiments.saved_policies import remove_later_policies
from rl4sys.experiments.starting_point import LoadedStart, StartingPoint
from rl4sys.experiments.training_loop import TrainingLoop
from rl4sys.learning import Diverged, Evaluation
from rl4sys.replay import ReplayCost
from rl4sys.seeding import Seeds

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup

_log = logging.getLogger(__name__)


class Run:
    """One training run in its directory. `step`, `save` and `restore` are all that an orchestrator needs."""

    result: Result | None = None
    """The result of the run, once `train` has returned."""

    def __init__(
        self,
        directory: RunDirectory,
        components: Components,
        manifest: Mapping[str, Any],
        algorithm: Algorithm | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.directory = directory
        self.components = components
        self.config = components.config
        self._manifest = dict(manifest)
        self._clock = clock
        self._saved_at: int | None = None
        self._within: str | None = None
        """What an error interrupted, if it came within a turn."""
        self._after_save: list[Callable[[], None]] = []
        self._parts = open_run(directory, components, self.threads, algorithm)
        self.learner, self.source = self._parts.learner, self._parts.source
        self._state = self._parts.state

    @classmethod
    def create(
        cls,
        config: ExperimentConfig,
        *,
        allow_fallback: bool = False,
        origin: Mapping[str, Any] | None = None,
        group: RankGroup | None = None,
        start: StartingPoint | None = None,
    ) -> Run:
        """A new run in a directory of its own. Impossible configs are refused before the directory is made.

        `origin` is what `origin_of_command` found where the command was given, if that was not in this process. With a
        group of ranks, this is rank 0; without one, this process takes the parts of all ranks in turn. With a `start`,
        its first weights are those of another run or policy.
        """
        loaded = None if start is None else start.load()
        try:
            plan = plan_run(config, group, allow_fallback=allow_fallback)
        except Exception as error:
            if not type(error).__module__.startswith("rl4sys."):
                _keep_unplanned(config, error, origin, start)
            raise
        manifest = plan.manifest | dict(origin or {})
        with directory_for_runs(Path(plan.config.experiment.directory)):
            directory = RunDirectory.create(plan.config, manifest, datetime.datetime.now().astimezone())
            try:
                run = cls(directory, plan.components, manifest, plan.algorithm)
                if loaded is not None:
                    run._start_from(loaded)
                return run
            except BaseException:
                shutil.rmtree(directory.path, ignore_errors=True)
                raise

    @classmethod
    def resume(
        cls,
        directory: RunDirectory,
        *,
        allow_fallback: bool = False,
        step: int | None = None,
        group: RankGroup | None = None,
        overrides: Overrides = (),
    ) -> Run:
        """The run as its newest good checkpoint left it, or that of a step; with a group of ranks, this is rank 0.

        Overrides become its settings; what they change is recorded, and makes the run inexact if it affects learning.
        """
        changed = changed_settings(directory, overrides)
        manifest = directory.read_manifest()
        if UNPLANNED in manifest:
            _plan_again(directory, changed.config, manifest, group, allow_fallback=allow_fallback)
            changed = changed_settings(directory, ())
        config = fit_to_machine(changed.config, allow_fallback=allow_fallback)
        if changed.changes:
            manifest["config"] = config.digest()
        device, grade = torch.device(config.experiment.device), Grade[manifest["grade"]]
        if RUNTIME_KEY in changed.changes:
            manifest["kernels"] = kernels_for(config)
        run = cls(directory, Components(config, device, grade, group, recorded_kernels(manifest)), manifest)
        try:
            run.restore(step)
            if changed.changes:
                run._adopt(changed)
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
        return int(self._manifest["threads"])

    @property
    def ranks(self) -> str:
        """How its ranks run, in words."""
        count, group = self.config.training.ranks, self.components.group
        if group is None:
            return f"{count}, whose parts this process computes in turn"
        return f"{count} on {', '.join(sorted(set(group.hosts)))}, connected by {group.backend(self.components.device)}"

    @property
    def replay_cost(self) -> ReplayCost | None:
        """What the replay takes when it is as full as it gets in this run, if there is one."""
        schema = self.learner.algorithm.policies.explore.segment_schema()
        return self.config.buffer.cost(schema, self.config.training.total_timesteps, self.config.environment.frames)

    @property
    def inexact(self) -> tuple[str, ...]:
        """Where the run resumed inexactly, and why."""
        return tuple(self._manifest["inexact"])

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.learner.steps

    @property
    def stopped(self) -> str | None:
        """Why an alert has stopped the run, if one has."""
        return self._parts.monitor.stopped

    @property
    def solved(self) -> str | None:
        """Why an alert or a callback has ended the run as a success, if one has."""
        return self._parts.monitor.solved or self._parts.callbacks.reason

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self.config.training.total_timesteps

    def train(
        self,
        loggers: Sequence[Logger] = (),
        stop: Callable[[], bool] = lambda: False,
        callbacks: Sequence[Callback] = (),
    ) -> Result:
        """Train until the end, or until `stop` returns true; either way, save and close the run."""
        self._parts.callbacks.add(callbacks)
        loop = TrainingLoop(self, self._parts, loggers, self._clock)
        try:
            if self._saved_at is None:
                self.save(is_scheduled=True)
            while not self.finished and self.stopped is None and self.solved is None and not stop():
                loop.turn()
            if self._saved_at != self.steps:
                self.save()
            self.result = loop.conclude()
            self._parts.leader.end()
            return self.result
        except Exception as error:
            self._keep_after(error)
            raise
        finally:
            loop.close()
            self.close()

    def debug(self) -> None:
        """Look closely at every update from now on; what is learned stays the same."""
        frequency = self.config.training.log_frequency
        debugging = DebugMode(self.directory.path, self.learner, self._parts.monitor.failures, frequency)
        self._parts.resources.callback(debugging.close)

    def step(self) -> None:
        """One turn: collect, learn, take note of the episodes that ended."""
        self._within = "collection"
        collected = self.source.collect(self.learner.store.newest)
        self._parts.callbacks.on_step(self, collected)
        self._within = "learning"
        learned: Mapping[str, float] = {}
        try:
            learned = self.learner.learn(collected.segments)
        except Diverged as error:
            self._parts.monitor.recover(error)
        self._parts.statistics.note_turn(collected.episodes, learned)
        self._parts.hash_log.note_turn(collected.segments)
        self._parts.episode_log.note(collected.episodes, self.steps)
        self._within = None
        self._parts.callbacks.on_update(self, learned)

    def evaluate(self, episodes: int = 20, seed: int = 0) -> Evaluation:
        """Fresh episodes with the newest exploit policy, in new environments; also after training."""
        return self.components.evaluate(self.learner, episodes, Seeds(seed))

    def metrics(self) -> Any:
        """The metrics so far as columns, `step` and each metric by its name.

        A pandas DataFrame if pandas is installed, and otherwise a dict of numpy arrays.
        """
        return metrics_table(self.directory.metrics)

    def latest_metrics(self) -> dict[str, float]:
        """The newest losses and the means over recent episodes, as the next record would have them."""
        return self._parts.statistics.metrics(self.learner)

    def policy(self) -> ActingPolicy:
        """The newest exploit policy, to act in a loop of one's own: `action = policy.act(observation)`."""
        newest, exploit = self.learner.store.newest, self.learner.algorithm.policies.exploit
        return ActingPolicy(exploit, newest.blob, self.config.environment)

    def save(self, *, best: bool = False, is_scheduled: bool = False) -> None:
        """Write a checkpoint of everything; a scheduled one would be there without any interruption too."""
        was_collecting = self._within == "collection"
        with self.directory.writing(self.steps):
            self._state.save(self.steps, best=best, is_scheduled=is_scheduled, was_collecting=was_collecting)
        self._saved_at = self.steps
        for listener in self._after_save:
            listener()

    def after_save(self, listener: Callable[[], None]) -> None:
        """Call a function after each checkpoint from now on."""
        self._after_save.append(listener)

    def restore(self, step: int | None = None) -> None:
        """Restore the newest good checkpoint, or that of a given step."""
        try:
            restored = self._state.restore(step)
        except NoCheckpoint:
            # Not even a run that began with other weights can start over: only its first checkpoint has them.
            if self._parts.checkpoints.steps() or "parent" in self._manifest:
                raise
            _log.warning("%s has no checkpoint yet: starting from the beginning.", self.directory.path)
            self._state.start_over()
            return
        modules = [f"{place} was changed" for place in changed_modules(self.directory.path)]
        self._note_inexact([*changes_since(self._manifest, self.config), *modules, *restored.inexact])
        self._saved_at = restored.step

    def abandon_later_steps(self) -> None:
        """Make this step the end of the run's history: what was saved after it is removed."""
        remove_later_policies(self.directory, self.steps)
        self.directory.result.unlink(missing_ok=True)
        self.save(is_scheduled=True)

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the parts of the run. Two runs with equal hashes are equal to the bit."""
        return self._state.fingerprint()

    def close(self) -> None:
        """Close environments and files and release the directory. What was not saved is lost."""
        self._parts.resources.close()

    def _keep_after(self, error: Exception) -> None:
        """Keep the traceback of an error, and the state before it unless an update was interrupted."""
        if isinstance(error, NotSaved) or self.components.group is not None:
            return
        try:
            write_crash_report(self.directory.path, self.steps, error)
            if self._within != "learning" and self._saved_at != self.steps:
                self.save()
        except Exception as second:  # the first error is what matters
            _log.warning("Not everything could be kept of the run: %s", second)

    def _start_from(self, loaded: LoadedStart) -> None:
        """Take over weights, and save them at once: nothing else of the run has them."""
        try:
            self._manifest["parent"] = loaded.begin(self.learner)
            self._parts.leader.copy_learner(self.learner.state())
            self.directory.write_manifest(self._manifest)
            self.save(is_scheduled=True)
        except BaseException:
            self.close()
            raise

    def _adopt(self, changed: ChangedSettings) -> None:
        """Make changed settings those of the run; one that was finished may have steps left now."""
        self._note_inexact(changed.reasons())
        changed.write(self.directory, self._manifest, self.steps)
        if not self.finished:
            self.directory.result.unlink(missing_ok=True)

    def _note_inexact(self, reasons: Sequence[str]) -> None:
        if reasons:
            self._manifest["inexact"] += [f"step {self.steps}: {reason}" for reason in reasons]
            self.directory.write_manifest(self._manifest)
            _log.warning("Continuing, not exact: %s", "; ".join(reasons))


def _keep_unplanned(
    config: ExperimentConfig, error: Exception, origin: Mapping[str, Any] | None, start: StartingPoint | None
) -> None:
    """Leave a run with the traceback of an error that came before it could begin."""
    manifest = unplanned_manifest(config) | dict(origin or {})
    manifest[UNPLANNED] = {"start": None if start is None else start.source}
    directory = RunDirectory.create(config, manifest, datetime.datetime.now().astimezone())
    write_crash_report(directory.path, 0, error)


def _plan_again(
    directory: RunDirectory,
    config: ExperimentConfig,
    manifest: dict[str, Any],
    group: RankGroup | None,
    *,
    allow_fallback: bool,
) -> None:
    """Plan a run that could not begin when it was made, and complete its directory and manifest."""
    if (start := manifest[UNPLANNED]["start"]) is not None:
        raise ConfigError(
            f"{directory.path} failed before it took over the weights of {start}. Train it again with: "
            f"rl4sys train {directory.config} --from {start}"
        )
    try:
        plan = plan_run(config, group, allow_fallback=allow_fallback)
    except Exception as error:
        write_crash_report(directory.path, 0, error)
        raise
    del manifest[UNPLANNED]
    manifest |= plan.manifest | {"given": manifest["given"]}
    directory.describe(plan.config, manifest)
