"""Proves exact resume for a config on this machine: N steps, kill -9, resume, N steps must equal 2N steps."""

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
from rl4sys.laboratory.verification.repetition import Verdict, Watch, as_it_was, quiet, scratch_directory

_TURNS = 2
"""Turns with updates before the kill, if nobody says how many steps."""


_LOG_FREQUENCY = 100
"""Steps between two records, at most."""


class CannotInterrupt(RuntimeError):
    """The run that was to be killed ended otherwise."""


def prove_resume(directory: RunDirectory, steps: int | None, watch: Watch = lambda run: ()) -> Verdict:
    """Train the config of a run twice in a scratch directory, once killed after `steps`, and compare.

    Without `steps` the kill comes as soon as there were some updates.
    """
    with scratch_directory() as scratch:
        config = _often_logged(quiet(as_it_was(directory), scratch))
        whole = Run.create(config)
        halfway = _Halfway(whole, steps)
        whole_result = whole.train(watch(whole), stop=halfway)
        half = halfway.half or whole.steps // 2
        resumed = Run.resume(RunDirectory(_killed(config, half)))
        interrupted_at = resumed.steps
        result = resumed.train(watch(resumed), stop=lambda: resumed.steps >= whole.steps)
        agreement = compare_runs(whole.directory.path, resumed.directory.path, 0, whole.steps)
        difference = agreement.difference
        parts = [part for part, sha in whole_result.fingerprint.items() if result.fingerprint[part] != sha]
        if difference is None and parts:
            difference = Difference(agreement.until, whole.steps, {"algorithm": tuple(parts)})
        records = sum(1 for _ in read_metrics(resumed.directory.metrics))
    return Verdict(
        run=directory.path,
        first=interrupted_at,
        last=whole.steps,
        marks=agreement.marks,
        records=records,
        difference=difference,
        causes=resume_causes(resumed, difference) if difference else (),
        remarks=() if whole.learner.updates else ("there was no update before the end, so learning was not compared",),
    )


def _often_logged(config: ExperimentConfig) -> ExperimentConfig:
    """The config with more records, which change nothing, so that even a short run has some to compare."""
    frequency = min(config.training.log_frequency, _LOG_FREQUENCY)
    return config.model_copy(update={"training": config.training.model_copy(update={"log_frequency": frequency})})


class _Halfway:
    """Ends a run after twice the steps that it took to make some updates, or twice those that were asked for."""

    def __init__(self, run: Run, steps: int | None) -> None:
        total = run.config.training.total_timesteps
        self._run, self._most = run, max(1, total // 2)
        self.half = None if steps is None else min(steps, self._most)
        self._versions: set[int] = set()

    def __call__(self) -> bool:
        run = self._run
        self._versions.add(run.learner.store.latest)
        if self.half is None and run.steps and (len(self._versions) > _TURNS or run.steps >= self._most):
            self.half = min(run.steps, self._most)
        return self.half is not None and run.steps >= 2 * self.half


def _killed(config: ExperimentConfig, half: int) -> Path:
    """The directory of a run that another process made, saved at `half`, and was killed after."""
    order = json.dumps({"config": config.model_dump(mode="json"), "half": half})
    ended = subprocess.run(
        [sys.executable, "-m", "rl4sys.laboratory.verification.resume"],
        input=order,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != -signal.SIGKILL:
        raise CannotInterrupt(
            f"The process that was to be killed after step {half:,} ended with code {ended.returncode} instead. "
            f"{ended.stderr.strip() or 'The run has too few turns to be interrupted; choose fewer --steps.'}"
        )
    return Path(json.loads(ended.stdout)["directory"])


def _killer(run: Run, half: int, kill: Callable[[], None]) -> Callable[[], bool]:
    """Saves at the first turn that reaches `half`, and kills after the next: what comes between must be forgotten."""
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
    order = json.load(sys.stdin)
    run = Run.create(load_experiment(order["config"]))
    sys.stdout.write(json.dumps({"directory": str(run.directory.path)}) + "\n")
    sys.stdout.flush()
    run.train(stop=_killer(run, order["half"], lambda: os.kill(os.getpid(), signal.SIGKILL)))


if __name__ == "__main__":
    _main()
