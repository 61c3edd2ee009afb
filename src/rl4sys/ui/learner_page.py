"""The page of one learner: its versions, outcomes, checkpoints, log and clients, and commands to it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from rl4sys.operations.status_findings import has_left
from rl4sys.ui.fleet import Fleet, UnknownServer, operator_transport
from rl4sys.ui.fleet_page import ENTRY
from rl4sys.ui.fleet_rows import client_rows, client_state, learner_link, learner_row
from rl4sys.ui.layout import PageLayout
from rl4sys.ui.live_updates import Event, LiveStreams
from rl4sys.ui.operator_commands import (
    LONGEST_REASON,
    CommandOutcome,
    audit_entries,
    carry_out,
    checked_command,
    offered,
)
from rl4sys.ui.security import form_fields, form_token
from rl4sys.ui.server_access import ServerAccess
from rl4sys.ui.tables import Table, UnknownTable, table_answer
from rl4sys.ui.watched_server import WatchedServer
from rl4sys.wire.calls import CallFailed

_PATH, _COMMAND = f"{ENTRY.path}/learner", f"{ENTRY.path}/command"
_MOST_OUTCOMES = 100
_NO_OPERATOR = "This page may not give commands, nor see the audit log: start `rl4sys ui` with --operator-token-file."


class LearnerPages:
    """Pages of learners. What their commands did is kept until the process ends."""

    def __init__(self, layout: PageLayout, fleet: Fleet, streams: LiveStreams, access: ServerAccess) -> None:
        self._layout, self._fleet, self._streams, self._access = layout, fleet, streams, access
        self._outcomes: dict[tuple[str, str], CommandOutcome] = {}

    def routes(self) -> list[Route]:
        """The page, its updates, and commands."""
        return [
            Route(_PATH, self._page),
            Route(f"{_PATH}.json", self._table),
            Route(f"{_PATH}.csv", self._table),
            Route(f"{_PATH}/live", self._live),
            Route(_COMMAND, self._command, methods=["POST"]),
        ]

    async def _page(self, request: Request) -> Response:
        await self._fleet.first_answer()
        server, name = self._wanted(request)
        found = self._values(server, name)
        audit = await run_in_threadpool(self._audit, server.address, name)
        return self._layout.page(
            "learner.html",
            ENTRY.path,
            **found,
            audit=audit,
            commands=offered(found["learner"]) if audit is not None else [],
            outcome=self._outcomes.get((server.address, name)),
            action=_COMMAND,
            form_token=form_token(request, _COMMAND),
            longest_reason=LONGEST_REASON,
        )

    async def _table(self, request: Request) -> Response:
        """The learner as `rl4sys learners show --json` prints it, or one of the tables of its page."""
        await self._fleet.first_answer()
        server, name = self._wanted(request)
        learner, clients = server.view.learner(name) or {}, server.view.clients_of(name)
        ending = request.url.path.removeprefix(_PATH)
        match request.query_params.get("table", ""):
            case "":
                if ending == ".json":
                    return table_answer(Table.of([{**learner, "clients_listed": clients}]), ending, is_single=True)
                # Lists have tables of their own.
                values = {name: value for name, value in learner.items() if not isinstance(value, list)}
                return table_answer(Table.of([values]), ending)
            case "versions":
                return table_answer(Table.of(versions(learner, clients)), ending)
            case "checkpoints":
                return table_answer(Table.of(checkpoints(learner)), ending)
            case "clients":
                return table_answer(Table.of(clients), ending)
            case "obedience":
                return table_answer(Table(("client", "answer", "state"), obedience(learner, clients)), ending)
            case "audit":
                audit = await run_in_threadpool(self._audit, server.address, name)
                if audit is None or isinstance(audit, str):
                    raise UnknownServer(audit or _NO_OPERATOR)
                return table_answer(Table.of(audit[::-1]), ending)
            case unknown:
                raise UnknownTable(unknown, ("versions", "checkpoints", "clients", "obedience", "audit"))

    async def _live(self, request: Request) -> Response:
        server, name = self._wanted(request)
        return self._streams.respond(self._events(server, name))

    async def _events(self, server: WatchedServer, name: str) -> AsyncGenerator[Event]:
        async for _ in self._fleet.revisions():
            if server.view.learner(name) is not None:
                body = self._layout.text("learner_body.html", **self._values(server, name))
                yield Event("update", {"body": body, "samples": {server.address: server.history.newest()}})

    async def _command(self, request: Request) -> Response:
        fields = form_fields(request)
        server, name = self._fleet.server(fields.get("server")), fields.get("learner", "")
        command = checked_command(fields)
        reason = fields["reason"]
        try:
            message = await run_in_threadpool(self._send, server.address, name, command, reason)
            outcome = CommandOutcome(time.time(), command.title, reason, message, True)
        except CallFailed as error:
            outcome = CommandOutcome(time.time(), command.title, reason, f"{error} ({error.code})", False)
        self._outcomes[server.address, name] = outcome
        if len(self._outcomes) > _MOST_OUTCOMES:
            self._outcomes.pop(next(iter(self._outcomes)))
        await run_in_threadpool(server.ask)
        return RedirectResponse(learner_link(server.address, name), 303)

    def _send(self, address: str, name: str, command: Any, reason: str) -> str:
        transport = operator_transport(self._access, address, name)
        if transport is None:
            raise UnknownServer(_NO_OPERATOR)
        try:
            return carry_out(transport, name, command, reason)
        finally:
            transport.close()

    def _audit(self, address: str, name: str) -> list[Mapping[str, Any]] | str | None:
        """The audit log; None without the right to see it."""
        transport = operator_transport(self._access, address, name)
        if transport is None:
            return None
        try:
            return audit_entries(transport, name)
        finally:
            transport.close()

    def _wanted(self, request: Request) -> tuple[WatchedServer, str]:
        server, name = self._fleet.server(request.query_params.get("server")), request.query_params.get("name", "")
        if server.view.learner(name) is None:
            raise UnknownServer(
                server.view.sentence if server.view.status is None else f"{server.address} has no learner '{name}'."
            )
        return server, name

    def _values(self, server: WatchedServer, name: str) -> dict[str, Any]:
        view = server.view
        learner = view.learner(name)
        if learner is None:
            raise UnknownServer(f"{server.address} has no learner '{name}'.")
        clients = view.clients_of(name)
        names = {f"learner {name}", *(f"client {each['client']}" for each in clients)}
        return {
            "address": server.address,
            "name": name,
            "learner": learner,
            "row": learner_row(server, learner),
            "versions": versions(learner, clients),
            "checkpoints": checkpoints(learner),
            "clients": client_rows(view, clients),
            "obedience": obedience(learner, clients),
            "findings": [each for each in (*view.problems, *view.notes) if each.about in names],
            "problem": view.problem,
            "since": server.history.since,
        }


def versions(learner: Mapping[str, Any], clients: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each version that connected clients act with or that episodes ended with, the newest first: who and how well."""
    by_version: dict[int, list[str]] = defaultdict(list)
    for client in clients:
        version = client.get("report", {}).get("version", client.get("version"))
        if version is not None and client["connected"] and not has_left(client):
            by_version[version].append(client["client"])
    outcomes = {outcome["version"]: outcome for outcome in learner["outcomes"]}
    found = []
    for version in sorted({learner["version"], *by_version, *outcomes}, reverse=True):
        names, outcome = sorted(by_version.get(version, [])), outcomes.get(version)
        found.append(
            {
                "version": version,
                "is_newest": version == learner["version"],
                "count": len(names),
                "names": names,
                "episodes": 0 if outcome is None else outcome["episodes"],
                "mean_return": None if outcome is None else outcome["mean_return"],
            }
        )
    return found


def checkpoints(learner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checkpoints of a learner, the newest first, and how many records of the log follow each."""
    return [
        {**checkpoint, "records_after": max(0, learner["log_end"] - checkpoint["position"])}
        for checkpoint in reversed(learner["checkpoints"])
    ]


def obedience(learner: Mapping[str, Any], clients: list[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Which clients have obeyed the order in force; empty if there is none."""
    sequence = learner["control_sequence"]
    if not sequence:
        return []
    found = []
    for client in clients:
        is_there = client["connected"] and not has_left(client)
        if "report" not in client:
            answer = "has not reported"
        elif client["report"]["control_sequence"] >= sequence:
            answer = "has obeyed"
        else:
            answer = "not yet" if is_there else "gets it when it connects"
        found.append({"client": client["client"], "state": client_state(client), "answer": answer})
    return sorted(found, key=lambda each: (each["answer"] == "has obeyed", each["client"]))
