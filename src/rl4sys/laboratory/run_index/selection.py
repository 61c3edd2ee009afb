"""Which runs somebody means: a path, an id, or the beginning of a name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rl4sys.laboratory.run_index.index import Index
from rl4sys.laboratory.run_index.records import RunRecord, read_record
from rl4sys.run_files import is_run
from rl4sys.suggestions import did_you_mean_one_of


class NoSuchRun(LookupError):
    """No run, or more than one, is meant by what was given."""


def choose_one(index: Index, text: str) -> tuple[Path, RunRecord]:
    """The one run that is meant, with the directory that its id starts from."""
    fitting = _fitting(index, text)
    if len(fitting) > 1:
        listed = "".join(f"\n  {record.id}" for _, record in fitting[:8])
        raise NoSuchRun(f"'{text}' fits {len(fitting)} runs; give more of the name:{listed}")
    return fitting[0]


def choose_several(index: Index, texts: Sequence[str]) -> list[tuple[Path, RunRecord]]:
    """The runs that are meant; the beginning of several names means all of them. Each comes once."""
    chosen = {root / record.id: (root, record) for text in texts for root, record in _fitting(index, text)}
    return list(chosen.values())


def _fitting(index: Index, text: str) -> list[tuple[Path, RunRecord]]:
    path = Path(text)
    if is_run(path):
        # Also a run elsewhere, which this index knows nothing of.
        whole = path.resolve()
        return [(path.parent, read_record(whole.parent, whole.name))]
    records = index.select()
    wanted = path.as_posix().removeprefix(f"{index.root.as_posix()}/")
    exact = [record for record in records if wanted in (record.id, Path(record.id).name)]
    begun = [record for record in records if record.id.startswith(wanted) or Path(record.id).name.startswith(wanted)]
    if fitting := exact or begun:
        return [(index.root, record) for record in sorted(fitting, key=lambda record: record.id)]
    hint = did_you_mean_one_of(path.name, (Path(record.id).name for record in records))
    hint = hint or "`rl4sys list` shows what there is."
    raise NoSuchRun(f"There is no run '{text}' in {index.root}. {hint}")
