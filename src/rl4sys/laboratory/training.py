"""`rl4sys.train` and `rl4sys.resume`: what the commands of these names do, for Python."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console

from rl4sys.checkpoints import Checkpoints
from rl4sys.config import ConfigError, Overrides
from rl4sys.environments import environment_name
from rl4sys.experiments import (
    Callback,
    ExperimentConfig,
    Result,
    Run,
    RunDirectory,
    Screen,
    Terminal,
    find_run,
    load_experiment,
)
from rl4sys.experiments.changed_settings import changed_settings, roll_back_changes
from rl4sys.experiments.starting_point import StartingPoint
from rl4sys.laboratory.run_index.index_logger import index_run

_log = logging.getLogger(__name__)

Env = str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]


def train(
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Overrides = (),
    *,
    env: Env | None = None,
    algorithm: str | None = None,
    total_timesteps: int | None = None,
    start_from: str | Path | None = None,
    parts: Sequence[str] = (),
    normalisers: bool = False,
    callbacks: Sequence[Callback] = (),
    allow_fallback: bool = False,
) -> Run:
    """Train, and return the finished run.

    Either a config says everything, or `env` and `algorithm` say what differs from the defaults; `overrides` such as
    `{"seed": 3}` change single values. `env` is an id, a function or class that makes an environment, or an instance.
    An instance is copied, and one copy acts unless `environment.num_envs` is given.

    With `start_from` (a run, a checkpoint or a policy file) the run begins with those weights: all of them or the named
    `parts`, such as `["actor"]`, and with `normalisers` also with the statistics of observations and rewards.

    `callbacks` look at the run while it trains, and may end it as a success.

    The run has `result`, `directory`, `metrics()`, `policy()` and `evaluate()`.
    """
    experiment = _experiment(config, overrides, env, algorithm, total_timesteps)
    if experiment.training.ranks > 1:
        _log.warning(
            "training.ranks is %d: this process computes the parts of all ranks in turn. `rl4sys train` starts them.",
            experiment.training.ranks,
        )
    start = None if start_from is None else StartingPoint(str(start_from), tuple(parts), normalisers)
    run = Run.create(experiment, allow_fallback=allow_fallback, start=start)
    train_with_progress(run, Console(stderr=True), callbacks=callbacks)
    return run


def resume(
    run: str | Path,
    overrides: Overrides = (),
    *,
    from_step: int | None = None,
    callbacks: Sequence[Callback] = (),
    allow_fallback: bool = False,
) -> Run:
    """Resume a run where it was stopped, train it to its end, and return it.

    `run` is its directory, the beginning of its name, or `last`. Overrides such as
    `{"training.total_timesteps": 2_000_000}` train a finished run longer; what they change is recorded. `from_step`
    goes back to the checkpoint of that step and removes what was saved after it.
    """
    directory = find_run(run)
    require_steps_left(directory, overrides, from_step)
    if from_step is not None:
        roll_back_changes(directory, from_step)
    resumed = Run.resume(directory, allow_fallback=allow_fallback, step=from_step, overrides=overrides)
    if from_step is not None:
        resumed.abandon_later_steps()
    train_with_progress(resumed, Console(stderr=True), callbacks=callbacks)
    return resumed


def require_steps_left(directory: RunDirectory, overrides: Overrides, from_step: int | None) -> None:
    """Refuse to resume a finished run without more steps, or from a step without a checkpoint."""
    known = Checkpoints(directory.checkpoints, keep=2).steps()
    if from_step is not None and from_step not in known:
        there = ", ".join(map(str, known)) or "none"
        raise ConfigError(f"{directory.path} has no checkpoint of step {from_step}; there are: {there}.")
    result = Result.read(directory.result)
    done = from_step if from_step is not None else (result.steps if result is not None and result.finished else 0)
    total = changed_settings(directory, overrides).config.training.total_timesteps
    if done and done >= total:
        raise ConfigError(
            f"{directory.path} has done {done:,} of {total:,} steps; train longer with "
            f"training.total_timesteps={2 * done}, or go back with a step of: {', '.join(map(str, known))}."
        )


def train_with_progress(
    run: Run, console: Console, stop: Callable[[], bool] = lambda: False, callbacks: Sequence[Callback] = ()
) -> Result:
    """Train a run in this process, with its progress in the index and, unless that is switched off, on a console."""
    with index_run(run.directory.path) as index_logger:
        if not run.config.logging.terminal:
            return run.train([index_logger], stop, callbacks)
        with Screen(console) as screen:
            terminal = Terminal(screen, run.config.name, run.config.training.total_timesteps)
            return run.train([terminal, index_logger], stop, [terminal, *callbacks])


def _experiment(
    config: str | Path | Mapping[str, Any] | None,
    overrides: Overrides,
    env: Env | None,
    algorithm: str | None,
    total_timesteps: int | None,
) -> ExperimentConfig:
    if config is None and (env is None or algorithm is None):
        raise ConfigError("train: give a config, or both env and algorithm: rl4sys.train(env=…, algorithm='ppo')")
    given: dict[str, Any] = {}
    if env is not None:
        given["environment.name"] = environment_name(env)
    if isinstance(env, gymnasium.Env):
        given["environment.num_envs"] = 1
    if algorithm is not None:
        given["algorithm.name"] = algorithm
    if total_timesteps is not None:
        given["training.total_timesteps"] = total_timesteps
    if isinstance(overrides, Mapping):
        return load_experiment(config or {}, {**given, **overrides})
    # JSON is YAML, in which the value of an override is written.
    return load_experiment(config or {}, [*(f"{key}={json.dumps(value)}" for key, value in given.items()), *overrides])
