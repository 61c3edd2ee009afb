"""The page that compares groups of runs over their seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rl4sys.laboratory.comparison.comparison import NothingToCompare
from rl4sys.laboratory.comparison.export import (
    ExportFormat,
    ExportTable,
    export,
    improvement_table,
    results_table,
    settings_table,
)
from rl4sys.laboratory.run_index.filters import WrongFilter
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.ui.layout import NavigationEntry, PageLayout, json_answer
from rl4sys.ui.run_comparison import RunComparisons, ShownComparison
from rl4sys.ui.run_library import RunLibrary, RunSelection, UnknownRun
from rl4sys.ui.tables import Table, UnknownTable, csv_answer

ENTRY = NavigationEntry("Compare", "/compare")
MOST_RUNS = 500
_FEW_SEEDS = 3
_MEDIA = {
    ExportFormat.LATEX: ("text/plain", "results.tex"),
    ExportFormat.MARKDOWN: ("text/plain", "results.md"),
    ExportFormat.CSV: ("text/csv", "runs.csv"),
    ExportFormat.TIDY: ("text/csv", "curves.csv"),
    ExportFormat.JSON: ("application/json", "results.json"),
}
"""The formats that need no picture, with their media types and file names."""


class ComparePages:
    """Answers requests about comparisons. Everything that is shown is in the address, so that it can be sent on."""

    def __init__(self, layout: PageLayout, library: RunLibrary, comparisons: RunComparisons) -> None:
        self._layout, self._library, self._comparisons = layout, library, comparisons

    def routes(self) -> list[Route]:
        """The page, its tables as JSON and CSV, the data of its charts, and exports."""
        return [
            Route(ENTRY.path, self.page),
            Route(f"{ENTRY.path}.json", self.as_json),
            Route(f"{ENTRY.path}.csv", self.as_csv),
            Route(f"{ENTRY.path}/curves.json", self.curves),
            Route(f"{ENTRY.path}/export", self.export),
        ]

    def page(self, request: Request) -> Response:
        """Tables and empty charts; a script fills the charts."""
        parameters = request.query_params
        values: dict[str, Any] = {
            "filter": parameters.get("filter", ""),
            "metrics": parameters.get("metrics", "return"),
            "runs": parameters.getlist("run"),
            "names": self._library.names,
            "name": parameters.get("in", self._library.names[0]),
            "with_seeds": "seeds" in parameters,
            "query": str(parameters),
            "shown": None,
            "sentence": None,
            "is_wrong": False,
        }
        if not values["runs"] and not values["filter"]:
            return self._layout.page("compare.html", ENTRY.path, **values)
        try:
            shown = self._shown(parameters)
        except (NothingToCompare, WrongFilter, UnknownRun) as error:
            values |= {"sentence": str(error), "is_wrong": True}
            return self._layout.page("compare.html", ENTRY.path, 400, **values)
        comparison = shown.comparison
        values |= {
            "shown": shown,
            "comparison": comparison,
            "results": results_table(comparison),
            "improvements": improvement_table(comparison) if comparison.improvements else None,
            "settings": settings_table(comparison) if comparison.differences else None,
            "numbers": {each.label: number for number, each in enumerate(comparison.groups)},
            "has_few_seeds": any(score.seeds < _FEW_SEEDS for score in comparison.scores),
            "toggled": _toggled(parameters),
            "directories": {str(self._library.root(name)): name for name in self._library.names},
        }
        return self._layout.page("compare.html", ENTRY.path, **values)

    def as_json(self, request: Request) -> Response:
        """The comparison as `rl4sys compare --json` prints it, without the plot that the command writes."""
        return json_answer(self._shown(request.query_params).comparison.json_values())

    def as_csv(self, request: Request) -> Response:
        """One of the tables: results, improvements or settings."""
        comparison = self._shown(request.query_params).comparison
        tables = {"results": results_table, "improvements": improvement_table, "settings": settings_table}
        wanted = request.query_params.get("table", "results")
        if wanted not in tables:
            raise UnknownTable(wanted, list(tables))
        return csv_answer(_as_table(tables[wanted](comparison)))

    def curves(self, request: Request) -> Response:
        """What the charts draw."""
        shown, with_seeds = self._shown(request.query_params), "seeds" in request.query_params
        groups = [{"label": each.label, "seeds": len(each.members)} for each in shown.comparison.groups]
        panels = [panel.json_values(with_seeds=with_seeds) for panel in shown.panels]
        return json_answer({"groups": groups, "panels": panels})

    def export(self, request: Request) -> Response:
        """The comparison for a paper or another program."""
        text = request.query_params.get("format", ExportFormat.MARKDOWN)
        if text not in tuple(_MEDIA):
            raise UnknownRun(f"There is no format '{text}' here; there are {', '.join(_MEDIA)}.")
        format_ = ExportFormat(text)
        chosen = self._chosen(request.query_params)
        comparison = self._comparisons.of(chosen, _metrics(request.query_params)).comparison
        media, file = _MEDIA[format_]
        headers = {"Content-Disposition": f'inline; filename="{file}"'}
        return Response(export(chosen, comparison, format_), media_type=media, headers=headers)

    def _shown(self, parameters: QueryParams) -> ShownComparison:
        return self._comparisons.of(self._chosen(parameters), _metrics(parameters))

    def _chosen(self, parameters: QueryParams) -> list[tuple[Path, RunRecord]]:
        """The runs that are named, and those that meet the conditions, each once."""
        found: dict[tuple[str, str], tuple[Path, RunRecord]] = {}
        for text in parameters.getlist("run"):
            name, _, id_ = text.partition("/")
            found[name, id_] = (self._library.root(name), self._library.find(name, id_))
        if parameters.get("filter"):
            name = parameters.get("in", self._library.names[0])
            selected = self._library.select(name, RunSelection(parameters["filter"], limit=MOST_RUNS + 1))
            found |= {(name, record.id): (self._library.root(name), record) for record in selected.records}
        if not found:
            raise NothingToCompare("No run meets these conditions.")
        if len(found) > MOST_RUNS:
            raise NothingToCompare(f"These are more than {MOST_RUNS} runs; add a condition.")
        return list(found.values())


def _metrics(parameters: QueryParams) -> list[str]:
    return [name.strip() for name in parameters.get("metrics", "return").split(",") if name.strip()] or ["return"]


def _toggled(parameters: QueryParams) -> str:
    """The address of the same comparison with single seeds shown, or without them."""
    kept = [(key, value) for key, value in parameters.multi_items() if key != "seeds"]
    return f"{ENTRY.path}?{urlencode(kept if 'seeds' in parameters else [*kept, ('seeds', '1')])}"


def _as_table(table: ExportTable) -> Table:
    rows: Sequence[dict[str, str]] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return Table(table.columns, rows)
