"""A run: trains, saves, resumes."""

from __future__ import annotations

import datetime
import json
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from rl4sys.atomic_files import replace_file
from rl4sys.environments import Grade
from rl4sys.experiments.checkpoint import Checkpoints, NoCheckpoint
from rl4sys.experiments.components import Components, check_combination
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.experiments.devices import choose_device, measure_threads, usable_cores
from rl4sys.experiments.metrics import Logger, Loggers, MetricsFile, Record, TensorBoard, metrics_digest
from rl4sys.experiments.policy_files import save_policy
from rl4sys.experiments.process_random import process_random_state, restore_process_random
from rl4sys.experiments.run_directory import RunDirectory, fingerprint_of_machine
from rl4sys.learning import Evaluation
from rl4sys.replay import PrioritizedBuffer, UniformBuffer
from rl4sys.seeding import Seeds
from rl4sys.state import State, digest, require

_log = logging.getLogger(__name__)

_RECENT_EPISODES = 100


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended."""

    steps: int
    finished: bool
    evaluation: float | None
    """Mean return of the last evaluation."""
    best: float | None
    """Mean return of the best evaluation."""
    seconds: float
    """Wall-clock time of this process; resumed runs count from the resumption."""
    fingerprint: Mapping[str, str]
    """Hashes of weights, optimizer, buffer, random generators and metric history: equal for equal runs."""


class Run:
    """One training run in its directory. `step`, `save` and `restore` are all that an orchestrator needs."""

    def __init__(
        self,
        directory: RunDirectory,
        config: ExperimentConfig,
        *,
        allow_fallback: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        check_combination(config)
        self.directory = directory
        self.config = config
        self._clock = clock
        manifest = directory.read_manifest()
        device = choose_device(config.experiment.device, allow_fallback=allow_fallback)
        seeds = Seeds(config.experiment.seed)
        grade = Grade[manifest["grade"]] if manifest else config.environment.grade(Seeds(seeds.integer("probe")))
        self.components = Components(config, device, grade)
        self.learner = self.components.learner()
        self.threads = manifest["threads"] if manifest else self._choose_threads()
        torch.set_num_threads(self.threads)
        self.inexact: list[str] = list(manifest["inexact"]) if manifest else []
        self._write_manifest()
        self.source = self.components.source(self.learner)
        self._checkpoints = Checkpoints(directory.checkpoints, config.training.keep_checkpoints)
        self._metrics = MetricsFile(directory.metrics)
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT_EPISODES)
        self._episodes = 0
        self._best: float | None = None
        self._evaluation: float | None = None
        self._learned: Mapping[str, float] = {}
        self._began = (clock(), 0)

    @classmethod
    def create(cls, config: ExperimentConfig, *, allow_fallback: bool = False) -> Run:
        """A new run in a directory of its own. What cannot work is refused before the directory is made."""
        check_combination(config)
        choose_device(config.experiment.device, allow_fallback=allow_fallback)
        Components(config, torch.device("cpu"), Grade.E3).algorithm()
        directory = RunDirectory.create(config, datetime.datetime.now().astimezone())
        return cls(directory, config, allow_fallback=allow_fallback)

    @classmethod
    def resume(cls, directory: RunDirectory, *, allow_fallback: bool = False, step: int | None = None) -> Run:
        """The run as its newest good checkpoint left it."""
        run = cls(directory, load_experiment(directory.config), allow_fallback=allow_fallback)
        run.restore(step)
        return run

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.learner.steps

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.steps >= self.config.training.total_timesteps

    def train(self, loggers: Sequence[Logger] = (), stop: Callable[[], bool] = lambda: False) -> Result:
        """Go on until the end, or until `stop` says so; either way a checkpoint is left behind."""
        training = self.config.training
        outlets = Loggers([self._metrics, *loggers, *self._configured_loggers()])
        self._began = (self._clock(), self.steps)
        try:
            if self.steps == 0:
                self.save()
            while not self.finished and not stop():
                before = self.steps
                self.step()
                improved = False
                if _crossed(before, self.steps, training.log_frequency) or self.finished:
                    outlets.log(self._record())
                if _crossed(before, self.steps, training.eval_frequency) or self.finished:
                    improved = self._evaluate(outlets)
                if improved or _crossed(before, self.steps, training.checkpoint_frequency) or self.finished:
                    self.save(best=improved)
            self.save()
            return self._conclude()
        finally:
            outlets.close()
            self.source.close()

    def step(self) -> None:
        """One turn: collect, learn, take note of the episodes that ended."""
        collected = self.source.collect(self.learner.store.newest)
        learned = self.learner.learn(collected.segments)
        if learned:
            self._learned = learned
        for episode in collected.episodes:
            self._recent.append((episode.return_, episode.length))
            self._episodes += 1

    def evaluate(self, episodes: int, seeds: Seeds) -> Evaluation:
        """How good the newest policy is when it does its best."""
        return self.components.evaluate(self.learner, episodes, seeds)

    def save(self, *, best: bool = False) -> None:
        """Write a checkpoint of everything."""
        offset = self._metrics.offset()
        state = {**self._state(), "metrics_offset": offset, "process_random": process_random_state()}
        buffer = self.learner.buffer
        replay = buffer if isinstance(buffer, UniformBuffer | PrioritizedBuffer) else None
        self._checkpoints.save(self.steps, state, replay, best=best)

    def restore(self, step: int | None = None) -> None:
        """Go back to the newest good checkpoint, or to that of a given step."""
        try:
            loaded = self._checkpoints.load(step)
        except NoCheckpoint:
            if self._checkpoints.steps():
                raise
            _log.warning("The run has no checkpoint yet: starting from the beginning.")
            self._metrics.cut(0)
            return
        for reason in loaded.skipped:
            _log.warning("Passed over a damaged checkpoint: %s. Using the one of step %d.", reason, loaded.step)
        state: Mapping[str, Any] = loaded.state
        require(state, "learner", "source", "tracking", "metrics_offset", "process_random")
        self.learner.restore(state["learner"])
        buffer = self.learner.buffer
        if isinstance(buffer, UniformBuffer | PrioritizedBuffer):
            for first, rows in self._checkpoints.replay_rows(loaded):
                buffer.load_rows(first, rows)
        self._metrics.cut(state["metrics_offset"])
        tracking = state["tracking"]
        self._recent.extend((return_, length) for return_, length in tracking["recent"])
        self._episodes, self._best = tracking["episodes"], tracking["best"]
        self._evaluation, self._learned = tracking["evaluation"], tracking["learned"]
        restore_process_random(state["process_random"])
        reasons = self.source.restore(state["source"])
        if reasons:
            self.inexact += [f"step {self.steps}: {reason}" for reason in reasons]
            self._write_manifest()
            _log.warning("Continuing, not exact: %s", "; ".join(reasons))

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the parts of the run. Two runs with equal hashes are equal to the bit."""
        state: Mapping[str, Any] = self._state()
        learner = state["learner"]
        buffer = self.learner.buffer
        rows: State = {}
        if isinstance(buffer, UniformBuffer | PrioritizedBuffer):
            rows = dict(buffer.rows(buffer.first, buffer.total))
        return {
            "algorithm": digest(learner["algorithm"]),
            "buffer": digest({"state": learner["buffer"], "rows": rows}),
            "learner": digest({name: part for name, part in learner.items() if name not in ("algorithm", "buffer")}),
            "environments": digest(state["source"]),
            "metrics": metrics_digest(self.directory.metrics),
        }

    def _state(self) -> dict[str, State]:
        tracking = {
            "recent": [[return_, length] for return_, length in self._recent],
            "episodes": self._episodes,
            "best": self._best,
            "evaluation": self._evaluation,
            "learned": dict(self._learned),
        }
        return {"learner": self.learner.state(), "source": self.source.state(), "tracking": tracking}

    def _record(self) -> Record:
        metrics = {f"train/{name}": value for name, value in self._learned.items()}
        if self._recent:
            metrics["rollout/return"] = sum(r for r, _ in self._recent) / len(self._recent)
            metrics["rollout/length"] = sum(n for _, n in self._recent) / len(self._recent)
        metrics |= {f"buffer/{name}": float(count) for name, count in self.learner.buffer.counts.items()}
        metrics |= {"episodes": float(self._episodes), "version": float(self.learner.store.latest)}
        return Record(self.steps, metrics, self._timing())

    def _timing(self) -> dict[str, float]:
        began, steps = self._began
        elapsed = self._clock() - began
        return {"seconds": elapsed, "steps_per_second": (self.steps - steps) / max(elapsed, 1e-9)}

    def _evaluate(self, outlets: Loggers) -> bool:
        """Evaluate and tell; true if the policy is the best so far."""
        seeds = Seeds(self.components.seeds.integer("evaluation", self.steps))
        outcome = self.evaluate(self.config.training.num_eval_episodes, seeds)
        metrics = {
            "evaluation/return": outcome.mean,
            "evaluation/deviation": outcome.deviation,
            "evaluation/length": sum(outcome.lengths) / len(outcome.lengths),
        }
        outlets.log(Record(self.steps, metrics, self._timing()))
        self._evaluation = outcome.mean
        improved = self._best is None or outcome.mean > self._best
        if improved:
            self._best = outcome.mean
            save_policy(self.directory.policies / "best", self.learner)
        return improved

    def _conclude(self) -> Result:
        save_policy(self.directory.policies / "latest", self.learner)
        result = Result(
            steps=self.steps,
            finished=self.finished,
            evaluation=self._evaluation,
            best=self._best,
            seconds=self._timing()["seconds"],
            fingerprint=self.fingerprint(),
        )
        replace_file(self.directory.result, json.dumps(asdict(result), indent=1).encode())
        return result

    def _configured_loggers(self) -> list[Logger]:
        return [TensorBoard(self.directory.tensorboard)] if self.config.logging.tensorboard else []

    def _choose_threads(self) -> int:
        if self.config.experiment.threads is not None:
            return self.config.experiment.threads
        cores = usable_cores() - (1 if self.config.training.pipelined else 0)
        exploit = self.learner.algorithm.policies.exploit
        return measure_threads(exploit, self.config.algorithm.update_size(), cores=cores)

    def _write_manifest(self) -> None:
        self.directory.write_manifest(
            {
                "seed": self.config.experiment.seed,
                "device": str(self.components.device),
                "threads": self.threads,
                "grade": self.components.grade.name,
                "grade_means": self.components.grade.value,
                "inexact": self.inexact,
                **fingerprint_of_machine(),
            }
        )


def _crossed(before: int, after: int, frequency: int) -> bool:
    """Whether a multiple of the frequency lies in (before, after]."""
    return frequency > 0 and after // frequency > before // frequency
