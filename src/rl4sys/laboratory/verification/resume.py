"""Checks exact resume of a config on this machine: N steps, kill -9, resume, N steps must equal 2N steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rl4sys.experiments import ExperimentConfig, Run, RunDirectory, load_experiment
from rl4sys.experiments.metrics import read_metrics
from rl4sys.laboratory.verification.causes import resume_causes
from rl4sys.laboratory.verification.differences import Difference, compare_runs
from rl4sys.laboratory.verification.repetition import (
    LoggersFor,
    VerificationResult,
    recorded_config,
    scratch_directory,
    without_loggers,
)

_VERSIONS = 2
"""Policy versions before the kill, if the number of steps is not given."""
_LOG_FREQUENCY = 100
"""Steps between two records, at most."""


class CannotInterrupt(RuntimeError):
    """The run ended before it could be killed."""


def check_resume(
    directory: RunDirectory, steps: int | None, loggers: LoggersFor = lambda run: ()
) -> VerificationResult:
    """Train the config of a run twice in a scratch directory, once killed after `steps`, and compare.

    Without `steps` it is killed after a few updates.
    """
    with scratch_directory() as scratch:
        config = _logged_often(without_loggers(recorded_config(directory), scratch))
        whole = Run.create(config)
        halfway = _Halfway(whole, steps)
        whole_result = whole.train(loggers(whole), stop=halfway)
        half = halfway.half or whole.steps // 2
        resumed = Run.resume(RunDirectory(_killed(config, half)))
        interrupted_at = resumed.steps
        result = resumed.train(loggers(resumed), stop=lambda: resumed.steps >= whole.steps)
        compared = compare_runs(whole.directory.path, resumed.directory.path, 0, whole.steps)
        difference = compared.difference
        parts = [part for part, sha in whole_result.fingerprint.items() if result.fingerprint[part] != sha]
        if difference is None and parts:
            difference = Difference(compared.until, whole.steps, {"algorithm": tuple(parts)})
        records = sum(1 for _ in read_metrics(resumed.directory.metrics))
    return VerificationResult(
        run=directory.path,
        first=interrupted_at,
        last=whole.steps,
        marks=compared.marks,
        records=records,
        difference=difference,
        causes=resume_causes(resumed, difference) if difference else (),
        remarks=() if whole.learner.updates else ("there was no update, so learning was not compared",),
    )


def _logged_often(config: ExperimentConfig) -> ExperimentConfig:
    """The config with more frequent records, so that even a short run has some to compare."""
    frequency = min(config.training.log_frequency, _LOG_FREQUENCY)
    return config.model_copy(update={"training": config.training.model_copy(update={"log_frequency": frequency})})


class _Halfway:
    """Ends a run after twice the steps that some updates took, or twice the given steps."""

    def __init__(self, run: Run, steps: int | None) -> None:
        total = run.config.training.total_timesteps
        self._run, self._most = run, max(1, total // 2)
        self.half = None if steps is None else min(steps, self._most)
        self._versions: set[int] = set()

    def __call__(self) -> bool:
        run = self._run
        self._versions.add(run.learner.store.latest)
        if self.half is None and run.steps and (len(self._versions) > _VERSIONS or run.steps >= self._most):
            self.half = min(run.steps, self._most)
        return self.half is not None and run.steps >= 2 * self.half


def _killed(config: ExperimentConfig, half: int) -> Path:
    """The directory of a run in another process that was saved at `half` and then killed."""
    launch = json.dumps({"config": config.model_dump(mode="json"), "half": half})
    ended = subprocess.run(
        [sys.executable, "-m", "rl4sys.laboratory.verification.resume"],
        input=launch,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != -signal.SIGKILL:
        raise CannotInterrupt(
            f"The process ended before it could be killed after step {half:,}, with exit code {ended.returncode}. "
            f"{ended.stderr.strip() or 'The run is too short to be interrupted; choose fewer --steps.'}"
        )
    return Path(json.loads(ended.stdout)["directory"])


def _killer(run: Run, half: int, kill: Callable[[], None]) -> Callable[[], bool]:
    """Saves once `half` is reached, and kills after the next rollout, whose steps must be discarded."""
    saved: list[int] = []

    def stop() -> bool:
        if saved and run.steps > saved[0]:
            kill()
        if not saved and run.steps >= half:
            run.save()
            saved.append(run.steps)
        return False

    return stop


def _main() -> None:
    launch = json.load(sys.stdin)
    run = Run.create(load_experiment(launch["config"]))
    sys.stdout.write(json.dumps({"directory": str(run.directory.path)}) + "\n")
    sys.stdout.flush()
    run.train(stop=_killer(run, launch["half"], lambda: os.kill(os.getpid(), signal.SIGKILL)))


if __name__ == "__main__":
    _main()
