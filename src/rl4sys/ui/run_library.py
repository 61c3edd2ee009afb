"""The runs that the pages show, in one or several directories."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rl4sys.laboratory.run_index.filters import RunFilter, WrongFilter, parse_filters, parse_order
from rl4sys.laboratory.run_index.index import IndexBusy, NoRuns, Query
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.laboratory.run_index.run_values import is_value_key, select_by_values, split_conditions
from rl4sys.ui.index_thread import IndexNotReady, IndexThread


class UnknownRun(LookupError):
    """There is no such run, or no such directory of runs."""


class RunSelection(NamedTuple):
    """Which runs to show: conditions and an order as `rl4sys list` takes them, and a part of the result."""

    filter: str = ""
    """Conditions with blanks between them, quoted as in a shell."""
    sort: str = "time"
    limit: int = -1
    offset: int = 0

    def conditions(self) -> list[str]:
        """The single conditions."""
        try:
            return shlex.split(self.filter)
        except ValueError as error:
            raise WrongFilter(f"{self.filter}: a quotation mark is missing its partner ({error}).") from None


@dataclass(frozen=True, slots=True)
class SelectedRuns:
    """The runs of a selection, and how many there are in all."""

    records: Sequence[RunRecord]
    total: int
    messages: tuple[str, ...]


class RunLibrary:
    """Finds runs by conditions and by id. Directories are known by their names, which occur in addresses of pages."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self._threads: Mapping[str, IndexThread] = _named(roots)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the directories."""
        return tuple(self._threads)

    def root(self, name: str) -> Path:
        """The directory of a name."""
        return self._thread(name).root

    def select(self, name: str, selection: RunSelection) -> SelectedRuns:
        """The runs of a directory that meet all conditions."""
        thread = self._thread(name)
        fields, values = split_conditions(selection.conditions())
        by_value = selection.sort if is_value_key(selection.sort) else None
        query = Query(parse_filters(fields), parse_order("time" if by_value else selection.sort))
        if not values and by_value is None:
            part = query._replace(limit=selection.limit, offset=selection.offset)
            records, total = thread.ask(lambda index: (index.select(part), index.count(part)))
            return SelectedRuns(records, total, thread.messages)
        # Settings and metrics are not in the index, but in the runs.
        found = select_by_values(thread.ask(lambda index: index.select(query)), thread.root, values, by_value)
        end = None if selection.limit < 0 else selection.offset + selection.limit
        return SelectedRuns(found[selection.offset : end], len(found), thread.messages)

    def json_lines(self, name: str, selection: RunSelection) -> list[str]:
        """The selected runs as JSON objects, as `rl4sys list --json` prints them."""
        thread = self._thread(name)
        conditions = selection.conditions()
        if split_conditions(conditions)[1] or is_value_key(selection.sort):
            records = self.select(name, selection).records
            return [json.dumps(record.json_values(thread.root), ensure_ascii=False) for record in records]
        query = Query(
            parse_filters(conditions), parse_order(selection.sort), limit=selection.limit, offset=selection.offset
        )
        return thread.ask(lambda index: list(index.json_lines(query)))

    def find(self, name: str, id_: str) -> RunRecord:
        """The record of one run; only a run that is in the index is found, whatever the id contains."""
        found = self._thread(name).ask(lambda index: index.select(Query(RunFilter("id = ?", (id_,)))))
        # The index looks for changes now and then only.
        if not found or not (self.root(name) / id_).is_dir():
            raise UnknownRun(f"There is no run '{id_}' in {self.root(name)}; it may have been removed.")
        return found[0]

    def matching(self, name: str, filter_: RunFilter, order: str, limit: int = -1) -> list[RunRecord]:
        """The records that meet an SQL condition."""
        return self._thread(name).ask(lambda index: index.select(Query(filter_, order, limit)))

    def revision(self, name: str) -> str:
        """A text that changes when a run of a directory appears, advances or goes; or what is wrong with the index."""
        try:
            return repr(self._thread(name).ask(lambda index: (id(index), *index.revision())))
        except (NoRuns, IndexBusy, IndexNotReady) as error:
            return str(error)

    def close(self) -> None:
        """Close all indexes."""
        for thread in self._threads.values():
            thread.close()

    def _thread(self, name: str) -> IndexThread:
        if name not in self._threads:
            raise UnknownRun(f"There is no directory of runs named '{name}'; there are {', '.join(self._threads)}.")
        return self._threads[name]


def _named(roots: Iterable[Path]) -> dict[str, IndexThread]:
    """Each directory under its name, with a number behind it if several have the same."""
    found: dict[str, IndexThread] = {}
    for root in dict.fromkeys(roots):
        stem = root.resolve().name or "runs"
        names = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(found) + 2))
        found[next(name for name in names if name not in found)] = IndexThread(root)
    return found
