"""Finds the run that somebody means by a path or by the beginning of a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

from rl4sys.experiments.run_directory import RunDirectory, RunNotFound


def find_run(text: str | Path) -> RunDirectory:
    """The run of a path, or of the beginning of a name: beside that path, or in `runs/`."""
    path = Path(text)
    if RunDirectory(path).is_run:
        return RunDirectory(path)
    near = sorted(set(_runs_in(path.parent)) | set(_runs_in(Path("runs"))))
    fitting = [run for run in near if run.name.startswith(path.name)] if path.name else []
    if len(fitting) == 1:
        return RunDirectory(fitting[0])
    if fitting:
        raise RunNotFound(f"'{text}' fits {len(fitting)} runs; give more of the name:{_listed(fitting)}")
    if path.exists():
        inside = sorted(_runs_in(path)) if path.is_dir() else []
        hint = f" It contains runs:{_listed(inside)}" if inside else ""
        raise RunNotFound(f"'{text}' is not a run: it has no config.yaml and manifest.json.{hint}")
    closest = difflib.get_close_matches(path.name, [run.name for run in near], n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(closest)}?" if closest else " `rl4sys list` shows them all."
    raise RunNotFound(f"There is no run '{text}', here or in runs/.{hint}")


def _runs_in(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from (path for path in directory.iterdir() if RunDirectory(path).is_run)


def _listed(runs: list[Path]) -> str:
    return "".join(f"\n  {run}" for run in runs[-8:])
