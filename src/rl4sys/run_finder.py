"""Finds runs by path, by the beginning of a name or as the last one, without reading them: there may be thousands."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from rl4sys.run_files import CONFIG, MANIFEST, is_run
from rl4sys.suggestions import did_you_mean_one_of

RUNS = Path("runs")
"""Where runs are made and searched for by default."""
DEPTH = 4
"""Levels of directories below `runs/` that are searched, such as those of sweeps."""
LAST = "last"
"""Names the newest run."""
_TIME = re.compile(r"-(\d{8}-\d{6})(?:-(\d+))?$")
"""The time at the end of the name of a run, and the number of one that began in the same second as another."""
_SEED_AND_TIME = re.compile(r"-seed\d+-\d{8}-\d{6}(?:-\d+)?$")
"""What follows the name that was given to a run in that of its directory."""
_LISTED = 8
"""Candidates that an error message lists."""


class RunNotFound(FileNotFoundError):
    """A text that names no run, or more than one."""


def find_one(text: str | Path, root: Path = RUNS) -> Path:
    """The directory of the only run that a path, an id, the beginning of either or `last` names."""
    return only_one(text, find_all(text, root))


def find_newest(text: str | Path, root: Path = RUNS, note: Callable[[str], None] = lambda text: None) -> Path:
    """The same; of several runs the newest, with a note."""
    found = find_all(text, root)
    newest = max(found, key=_began)
    if len(found) > 1:
        note(f"'{text}' matches {len(found)} runs; this is the newest of them, {newest}")
    return newest


def only_one(text: str | Path, found: list[Path]) -> Path:
    """The run that was found, if it is the only one."""
    if len(found) > 1:
        raise RunNotFound(f"'{text}' matches {len(found)} runs; give more of the name:{_listed(found)}")
    return found[0]


def find_all(text: str | Path, root: Path = RUNS) -> list[Path]:
    """The directories of all runs that a path, an id or the beginning of either names; at least one.

    Runs are searched for below `root` and beside the path that was given. A whole name, of the directory or as it was
    given to the run, takes precedence over the beginning of others, and `last` is the newest run below `root`.
    """
    path = Path(text)
    if is_run(path):
        return [path]
    names: dict[Path, tuple[str, ...]] = {run: (run.as_posix(),) for run in _runs_in(path.parent)}
    names |= {root / id_: (id_, id_.rpartition("/")[2]) for id_ in runs_below(root)}
    wanted = {path.as_posix(), path.as_posix().removeprefix(f"{root.as_posix()}/")}
    whole = sorted(run for run in names if wanted.intersection(names[run]))
    if not whole and str(text) == LAST:
        return [_newest_below(root, names)]
    given = whole or sorted(run for run in names if wanted.intersection(map(_without_seed_and_time, names[run])))
    if found := given or sorted(run for run in names if _begins(names[run], wanted)):
        return found
    if path.exists():
        inside = sorted(path / id_ for id_ in runs_below(path))
        hint = f" It contains runs:{_listed(inside)}" if inside else ""
        raise RunNotFound(f"'{text}' is not a run: it has no {CONFIG} and {MANIFEST}.{hint}")
    hint = did_you_mean_one_of(path.name, (run.name for run in names)) or "`rl4sys list` shows all runs."
    raise RunNotFound(f"There is no run '{text}', here or in {root}/. {hint}")


def runs_below(
    root: Path, known: Container[str] = (), warn: Callable[[str], None] = lambda text: None
) -> dict[str, int]:
    """The id of every run (its path relative to `root`) with its modification time in nanoseconds.

    Directories that are known to be runs are not looked into again. `warn` gets a line for each that is unreadable.
    """
    found: dict[str, int] = {}
    waiting = [("", 0)]
    while waiting:
        prefix, depth = waiting.pop()
        for entry in _directories(root / prefix, warn):
            id_ = prefix + entry.name
            if id_ not in known and not is_run(root / id_):
                if depth < DEPTH:
                    waiting.append((f"{id_}/", depth + 1))
                continue
            try:
                found[id_] = entry.stat().st_mtime_ns
            except FileNotFoundError:
                # Another process removed it meanwhile; the others are unaffected.
                continue
    return found


def _directories(path: Path, warn: Callable[[str], None]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return [entry for entry in entries if entry.name[0] != "." and entry.is_dir()]
    except PermissionError:
        warn(f"skipped: no permission to read {path}")
    except (FileNotFoundError, NotADirectoryError):
        # Another process removed it meanwhile.
        pass
    return []


def _newest_below(root: Path, names: Iterable[Path]) -> Path:
    runs = [run for run in names if run.is_relative_to(root)]
    if not runs:
        raise RunNotFound(f"There is no last run: there are no runs in {root}/.")
    return max(runs, key=_began)


def _began(run: Path) -> tuple[str, int, str]:
    """When a run was created, to compare it with others: a copy keeps its name, but no times of files."""
    if (match := _TIME.search(run.name)) is not None:
        return match[1], int(match[2] or 1), run.name
    return time.strftime("%Y%m%d-%H%M%S", time.localtime((run / CONFIG).stat().st_mtime)), 1, run.name


def _runs_in(directory: Path) -> Iterator[Path]:
    for entry in _directories(directory, lambda text: None):
        path = directory / entry.name
        if is_run(path):
            yield path


def _without_seed_and_time(name: str) -> str:
    return _SEED_AND_TIME.sub("", name)


def _begins(names: Iterable[str], wanted: Iterable[str]) -> bool:
    return any(name.startswith(tuple(wanted)) for name in names)


def _listed(runs: list[Path]) -> str:
    # Names end with the time, so the last ones are the newest.
    return "".join(f"\n  {run}" for run in runs[-_LISTED:])
