"""Finds the runs that `resume` continues: one, or the seeds of one experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rl4sys.laboratory.run_index.index import record_at
from rl4sys.laboratory.run_index.records import UNFINISHED, RunRecord
from rl4sys.run_finder import RUNS, find_all, only_one


def find_resumable(
    texts: Sequence[str], root: Path = RUNS, note: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """The directories of the runs that some texts name, each once; at least one.

    Of several runs that one text names, it is the only one that is unfinished, or all unfinished ones if they differ
    in their seed only. A run that is finished is found if nothing else has its name.
    """
    return list(dict.fromkeys(run for text in texts for run in _resumable(text, root, note)))


def _resumable(text: str, root: Path, note: Callable[[str], None]) -> list[Path]:
    found = find_all(text, root)
    if len(found) == 1:
        return found
    records = {run: record_at(run)[1] for run in found}
    unfinished = [run for run in found if records[run].status in UNFINISHED]
    chosen = unfinished or found
    if not _are_seeds([records[run] for run in chosen]):
        return [only_one(text, chosen)]
    state = "unfinished" if unfinished else "finished"
    seeds = f" of one experiment, with seeds {', '.join(str(records[run].seed) for run in chosen)}"
    note(f"'{text}' matches {len(found)} runs; {len(chosen)} {state}{seeds if len(chosen) > 1 else f': {chosen[0]}'}")
    return chosen


def _are_seeds(records: Sequence[RunRecord]) -> bool:
    """Whether some runs differ in their seed only."""
    return len({record.config for record in records}) == 1 and len({each.seed for each in records}) == len(records)
