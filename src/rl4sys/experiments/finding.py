"""Finds the run that somebody means by a path or by the beginning of a name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rl4sys.experiments.run_directory import RunDirectory, RunNotFound
from rl4sys.suggestions import did_you_mean_one_of

_RUNS = Path("runs")
_DEPTH = 4
"""Levels of directories below `runs/` that are looked into, such as those of sweeps."""


def find_run(text: str | Path) -> RunDirectory:
    """The run of a path, or of the beginning of a name: beside that path, or below `runs/`."""
    path = Path(text)
    if RunDirectory(path).is_run:
        return RunDirectory(path)
    near = sorted({*_runs_in(path.parent), *_runs_below(_RUNS)})
    fitting = _fitting(path, near) if path.name else []
    if len(fitting) == 1:
        return RunDirectory(fitting[0])
    if fitting:
        raise RunNotFound(f"'{text}' fits {len(fitting)} runs; give more of the name:{_listed(fitting)}")
    if path.exists():
        inside = sorted(_runs_below(path)) if path.is_dir() else []
        hint = f" It contains runs:{_listed(inside)}" if inside else ""
        raise RunNotFound(f"'{text}' is not a run: it has no config.yaml and manifest.json.{hint}")
    hint = did_you_mean_one_of(path.name, (run.name for run in near)) or "`rl4sys list` shows them all."
    raise RunNotFound(f"There is no run '{text}', here or in runs/. {hint}")


def _fitting(path: Path, near: list[Path]) -> list[Path]:
    """The runs that a text may mean: a whole name before the beginning of one."""
    if path.parent != Path():
        # Who names a directory means what is in it, be it seen from here or from `runs/`.
        places = (path.parent, _RUNS / path.parent)
        near = [run for run in near if run.parent in places] or near
    whole = [run for run in near if run.name == path.name]
    return whole or [run for run in near if run.name.startswith(path.name)]


def _runs_in(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        yield from (path for path in directory.iterdir() if RunDirectory(path).is_run)


def _runs_below(directory: Path, depth: int = _DEPTH) -> Iterator[Path]:
    for path in directory.iterdir() if directory.is_dir() else ():
        if RunDirectory(path).is_run:
            yield path
        elif depth and path.is_dir() and not path.name.startswith("."):
            yield from _runs_below(path, depth - 1)


def _listed(runs: list[Path]) -> str:
    return "".join(f"\n  {run}" for run in runs[-8:])
