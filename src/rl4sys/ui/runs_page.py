"""The page of all runs: filtered, sorted, page by page."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from rl4sys.laboratory.run_index.filters import WrongFilter, is_descending, split_order
from rl4sys.ui.layout import NavigationEntry, PageLayout
from rl4sys.ui.live_updates import Event, LiveSource, LiveStreams
from rl4sys.ui.run_library import RunLibrary, RunSelection, SelectedRuns
from rl4sys.ui.tables import Table, csv_answer

ENTRY = NavigationEntry("Runs", "/runs")
PAGE = 100
"""Runs on one page."""
_LOOK_SECONDS = 1.0
"""Seconds between two looks for changes while a page is open."""
SORTS = ("time", "return", "best", "steps", "name", "algorithm", "env", "seed", "status")


def routes(layout: PageLayout, library: RunLibrary, streams: LiveStreams) -> list[Route]:
    """The page, its table as JSON and CSV, and an event whenever runs have changed."""
    sources = {name: _source(library, name) for name in library.names}

    def page(request: Request) -> Response:
        values = _values(request, library)
        if "fragment" in request.query_params:
            return HTMLResponse(layout.text("runs_table.html", **values), 400 if values["error"] else 200)
        return layout.page("runs.html", ENTRY.path, 400 if values["error"] else 200, **values)

    def as_json(request: Request) -> Response:
        lines = ",\n".join(_lines(request, library))
        return Response(f"[\n{lines}\n]\n" if lines else "[]\n", media_type="application/json")

    def as_csv(request: Request) -> Response:
        return csv_answer(Table.of([json.loads(line) for line in _lines(request, library)]))

    async def live(request: Request) -> Response:
        name = _directory(request.query_params, library)
        library.root(name)
        return streams.respond(_changes(sources[name]))

    return [
        Route(ENTRY.path, page),
        Route(f"{ENTRY.path}/live", live),
        Route(f"{ENTRY.path}.json", as_json),
        Route(f"{ENTRY.path}.csv", as_csv),
    ]


def runs_address(library: RunLibrary, name: str, condition: str = "") -> str:
    """The runs of a directory, or those that meet a condition, whatever characters it has."""
    view = ({"filter": shlex.quote(condition)} if condition else {}) | ({"in": name} if len(library.names) > 1 else {})
    return f"{ENTRY.path}?{urlencode(view)}" if view else ENTRY.path


def _source(library: RunLibrary, name: str) -> LiveSource[str]:
    return LiveSource(lambda: library.revision(name), _LOOK_SECONDS)


async def _changes(source: LiveSource[str]) -> AsyncGenerator[Event]:
    """An event for every change after the page was opened."""
    async with contextlib.aclosing(source.values()) as values:
        await anext(values)
        async for _ in values:
            yield Event("changed")


def _lines(request: Request, library: RunLibrary) -> list[str]:
    parameters = request.query_params
    limit = _whole_number(parameters.get("limit", "0"), "limit")
    selection = RunSelection(parameters.get("filter", ""), parameters.get("sort", "time"), limit or -1)
    return library.json_lines(_directory(parameters, library), selection)


def _values(request: Request, library: RunLibrary) -> dict[str, object]:
    parameters = request.query_params
    name = _directory(parameters, library)
    number = max(1, _whole_number(parameters.get("page", "1"), "page"))
    selection = RunSelection(parameters.get("filter", ""), parameters.get("sort", "time"), PAGE, (number - 1) * PAGE)
    error = None
    try:
        found = library.select(name, selection)
    except WrongFilter as wrong:
        found, error = SelectedRuns((), 0, ()), str(wrong)
    view = {"filter": selection.filter, "sort": selection.sort} | ({"in": name} if len(library.names) > 1 else {})

    def address(**changes: object) -> str:
        return f"{ENTRY.path}?{urlencode({**view, **changes})}"

    def order(sort: str) -> str:
        """The order that the heading of a column gives: its own, and its reverse if that is shown already."""
        return f"-{sort}" if selection.sort == sort else sort

    return {
        "found": found,
        "error": error,
        "selection": selection,
        "number": number,
        "pages": max(1, -(-found.total // PAGE)),
        "sorts": SORTS,
        "order": order,
        "sorted_field": split_order(selection.sort)[0],
        "direction": "descending" if is_descending(selection.sort) else "ascending",
        "name": name,
        "root": library.root(name),
        "names": library.names,
        "address": address,
        "tagged": lambda tag: address(filter=shlex.quote(f"tag={tag}")),
        "query": urlencode(view),
    }


def _directory(parameters: Mapping[str, str], library: RunLibrary) -> str:
    return parameters.get("in", library.names[0])


def _whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise WrongFilter(f"{name}={text}: expected a whole number.")
    return int(text)
