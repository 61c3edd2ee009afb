"""The same as the command line, for Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rl4sys.config import Overrides
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.run import Run
from rl4sys.experiments.terminal import Screen, Terminal


def train(config: str | Path | Mapping[str, Any], overrides: Overrides = (), *, allow_fallback: bool = False) -> Run:
    """Train as a config says, with overrides such as `{"seed": 3}`; returns the finished run.

    Its `result` tells how it ended, its `directory` where everything is, and `evaluate` how good the policy is.
    """
    run = Run.create(load_experiment(config, overrides), allow_fallback=allow_fallback)
    if not run.config.logging.terminal:
        run.train()
        return run
    with Screen(Console(stderr=True)) as screen:
        run.train([Terminal(screen, run.config.name, run.config.training.total_timesteps)])
    return run
