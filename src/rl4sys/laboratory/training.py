"""`rl4sys.train`: what `rl4sys train` does, for Python."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gymnasium
from rich.console import Console

from rl4sys.config import ConfigError, Overrides
from rl4sys.environments import environment_name
from rl4sys.experiments import ExperimentConfig, Result, Run, Screen, Terminal, load_experiment
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
    allow_fallback: bool = False,
) -> Run:
    """Train, and return the finished run.

    Either a config says everything, or `env` and `algorithm` say what differs from the defaults; `overrides` such as
    `{"seed": 3}` change single values. `env` is an id, a function or class that makes an environment, or an instance.
    An instance is copied, and one copy acts unless `environment.num_envs` is given.

    The run has `result`, `directory`, `metrics()`, `policy()` and `evaluate()`.
    """
    experiment = _experiment(config, overrides, env, algorithm, total_timesteps)
    if experiment.training.ranks > 1:
        _log.warning(
            "training.ranks is %d: this process computes the parts of all ranks in turn. `rl4sys train` starts them.",
            experiment.training.ranks,
        )
    run = Run.create(experiment, allow_fallback=allow_fallback)
    train_with_progress(run, Console(stderr=True))
    return run


def train_with_progress(run: Run, console: Console, stop: Callable[[], bool] = lambda: False) -> Result:
    """Train a run in this process, with its progress in the index and, unless that is switched off, on a console."""
    with index_run(run.directory.path) as index_logger:
        if not run.config.logging.terminal:
            return run.train([index_logger], stop)
        with Screen(console) as screen:
            terminal = Terminal(screen, run.config.name, run.config.training.total_timesteps)
            return run.train([terminal, index_logger], stop)


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
