"""`rl4sys.train`: the Python counterpart of the command `rl4sys train`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from rl4sys.config import Overrides
from rl4sys.experiments import Run, Screen, Terminal, load_experiment
from rl4sys.laboratory.run_index.index_logger import index_run


def train(config: str | Path | Mapping[str, Any], overrides: Overrides = (), *, allow_fallback: bool = False) -> Run:
    """Train a config with overrides such as `{"seed": 3}`, and return the finished run.

    The run has its `result`, its `directory`, and `evaluate` for more evaluations.
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
