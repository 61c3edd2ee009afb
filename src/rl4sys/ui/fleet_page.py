"""The fleet page: whether all is well, then the learners and clients of each server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rl4sys.operations.status_findings import LONGEST_ABSENCE, has_left
from rl4sys.operations.status_tables import shown_bytes, shown_seconds, with_findings
from rl4sys.ui.fleet import Fleet, UnknownServer
from rl4sys.ui.fleet_rows import MOST_CLIENTS, client_rows, learner_rows
from rl4sys.ui.layout import NavigationEntry, PageLayout, json_answer
from rl4sys.ui.live_updates import Event, LiveStreams
from rl4sys.ui.tables import Table, csv_answer
from rl4sys.ui.watched_server import WatchedServer

ENTRY = NavigationEntry("Fleet", "/fleet")


def routes(layout: PageLayout, fleet: Fleet, streams: LiveStreams) -> list[Route]:
    """The page, its updates, and its tables as JSON and CSV."""
    body = _RenderedOnce(layout, fleet)

    async def page(request: Request) -> Response:
        await fleet.first_answer()
        return layout.page("fleet.html", ENTRY.path, **fleet_values(fleet))

    async def live(request: Request) -> Response:
        return streams.respond(_events(fleet, body))

    async def as_json(request: Request) -> Response:
        await fleet.first_answer()
        address = request.query_params.get("server")
        if address is None:
            return json_answer(fleet.values())
        view = fleet.server(address).view
        if view.status is None or view.problem:
            raise UnknownServer(f"{view.sentence}.")
        return json_answer(with_findings(view.status))

    async def curves(request: Request) -> Response:
        return json_answer(fleet.server(request.query_params.get("server")).history.curves())

    async def learners_csv(request: Request) -> Response:
        return _csv(fleet, "learners", request.query_params.get("server"))

    async def clients_csv(request: Request) -> Response:
        return _csv(fleet, "clients", request.query_params.get("server"))

    return [
        Route(ENTRY.path, page),
        Route(f"{ENTRY.path}/live", live),
        Route(f"{ENTRY.path}.json", as_json),
        Route(f"{ENTRY.path}/history.json", curves),
        Route(f"{ENTRY.path}/learners.csv", learners_csv),
        Route(f"{ENTRY.path}/clients.csv", clients_csv),
    ]


def fleet_values(fleet: Fleet) -> dict[str, Any]:
    """What the page shows."""
    views = [server.view for server in fleet.servers]
    problems = [(view.address, finding) for view in views for finding in view.problems]
    connected = len({(view.address, client["client"]) for view in views for client in view.connected})
    counts = {
        "server": len(views),
        "learner": sum(len(view.status["learners"]) for view in views if view.status is not None),
        "connected client": connected,
    }
    left = sum(
        has_left(client) and client["disconnected_seconds"] < LONGEST_ABSENCE
        for view in views
        if view.status is not None and not view.problem
        for client in view.status["clients"]
    )
    return {
        "headline": headline(problems, counts) + (f" ({left} left within the hour)" if left else ""),
        "is_well": not problems,
        "problems": problems,
        "notes": [(view.address, finding) for view in views for finding in view.notes],
        "servers": [_server_values(server) for server in fleet.servers],
        "has_several": len(views) > 1,
        "most_clients": MOST_CLIENTS,
    }


def headline(problems: Sequence[Any], counts: Mapping[str, int]) -> str:
    """One line: that all is well, or how much is wrong. It changes only with that, since screen readers read it out."""
    listed = ", ".join(f"{count:,} {name}{'s' * (count != 1)}" for name, count in counts.items())
    if not problems:
        return f"All is well: {listed}"
    return f"{len(problems)} problem{'s' * (len(problems) != 1)} with {listed}"


def _server_values(server: WatchedServer) -> dict[str, Any]:
    view = server.view
    values: dict[str, Any] = {"address": view.address, "problem": view.problem, "at": view.at, "since": None}
    if view.status is None:
        return values | {"facts": "", "learners": [], "clients": [], "more_clients": 0}
    facts = view.status["server"]
    clients = client_rows(view)
    return values | {
        "facts": (
            f"{facts['software']}, up {shown_seconds(facts['uptime_seconds'])}, cpu {facts['cpu']:.0%}, "
            f"memory {shown_bytes(facts['memory_bytes'])}, data {shown_bytes(facts['data_bytes'])}, "
            f"{shown_bytes(facts['disk_free_bytes'])} free"
        ),
        "learners": learner_rows(server),
        "clients": clients,
        "more_clients": len(view.status["clients"]) - len(clients) + facts["unlisted_clients"],
        "since": server.history.since,
    }


class _RenderedOnce:
    """The part of the page that changes, rendered once for all pages that show it."""

    def __init__(self, layout: PageLayout, fleet: Fleet) -> None:
        self._layout, self._fleet = layout, fleet
        self._revision, self._event = -1, Event("update")

    def event(self) -> Event:
        """The newest state."""
        if self._revision != self._fleet.revision:
            self._revision = self._fleet.revision
            html = self._layout.text("fleet_body.html", **fleet_values(self._fleet))
            samples = {server.address: server.history.newest() for server in self._fleet.servers}
            self._event = Event("update", {"body": html, "samples": samples})
        return self._event


async def _events(fleet: Fleet, body: _RenderedOnce) -> AsyncGenerator[Event]:
    async for _ in fleet.revisions():
        yield body.event()


def _csv(fleet: Fleet, kind: str, address: str | None) -> Response:
    """All learners or clients of all servers, or of one, with every field of their status."""
    servers = fleet.servers if address is None else (fleet.server(address),)
    rows = [
        {"server": view.address, **each}
        for view in (server.view for server in servers)
        if view.status is not None
        for each in view.status[kind]
    ]
    return csv_answer(Table.of(rows))
