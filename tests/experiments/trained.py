"""Runs that were trained once, for tests that only look at them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.experiments import Run, RunDirectory

from .runs import small


def trained_run(kind: Mapping[str, Any], directory: Path, **overrides: Any) -> RunDirectory:
    """A run of 256 steps that is over."""
    run = Run.create(small(kind, directory, **overrides))
    run.train()
    return run.directory


def copied(run: RunDirectory, directory: Path) -> RunDirectory:
    """The same run elsewhere, to be damaged."""
    shutil.copytree(run.path, directory / run.path.name, symlinks=True)
    return RunDirectory(directory / run.path.name)
