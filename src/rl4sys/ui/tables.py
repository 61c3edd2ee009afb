"""Tables of the pages as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from starlette.responses import Response

from rl4sys.laboratory.run_index.run_values import flat_settings

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class UnknownTable(LookupError):
    """A page has no table of this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no table '{name}' on this page; there are {', '.join(known)}.")


class Table(NamedTuple):
    """Rows by the names of columns."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """A table with all columns that occur."""
        return cls(list(dict.fromkeys(name for row in rows for name in row)), rows)


def table_answer(table: Table, ending: str, *, is_single: bool = False) -> Response:
    """A table in the format of an ending, `.json` or `.csv`; a single row is not a list in JSON."""
    if ending == ".json":
        value = table.rows[0] if is_single else table.rows
        return Response(json.dumps(value, indent=1) + "\n", media_type="application/json")
    return csv_answer(table)


def csv_answer(table: Table) -> Response:
    """A table as CSV: lists with blanks between their values, mappings as columns with dotted names."""
    rows = [flat_settings(row) for row in table.rows]
    columns = list(dict.fromkeys([*(name for row in rows for name in row)])) or list(table.columns)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return Response(text.getvalue(), media_type="text/csv")


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple):
        value = " ".join(map(str, value))
    # Names and notes are free text, and people open these files in spreadsheets.
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
