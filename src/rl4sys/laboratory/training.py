"""The same as `rl4sys train`, for Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rl4sys.config import Overrides
from rl4sys.experiments import Run, Screen, Terminal, load_experiment
from rl4sys.laboratory.run_index.index_logger import index_run


def train(config: str | Path | Mapping[str, Any], overrides: Overrides = (), *, allow_fallback: bool = False) -> Run:
    """Train as a config says, with overrides such as `{"seed": 3}`; returns the finished run.

    Its `result` tells how it ended, its `directory` where everything is, and `evaluate` how good the policy is.
    """
    run = Run.create(load_experiment(config, overrides), allow_fallback=allow_fallback)
    with index_run(run.directory.path) as index_logger:
        if not run.config.logging.terminal:
            run.train([index_logger])
            return run
        with Screen(Console(stderr=True)) as screen:
            terminal = Terminal(screen, run.config.name, run.config.training.total_timesteps)
            run.train([terminal, index_logger])
    return run
