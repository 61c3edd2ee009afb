"""Learners and clients as the rows of the fleet page, what is wrong first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rl4sys.operations.status_findings import Finding, has_left
from rl4sys.operations.status_tables import (
    by_severity,
    decision_time,
    learner_state,
    shown_bytes,
    shown_counts,
    shown_seconds,
)
from rl4sys.ui.watched_server import ServerView, WatchedServer

MOST_CLIENTS = 200
"""Rows of clients; those with problems come first, and the downloads have all."""
_GOOD_STATES = ("waiting", "learning", "sleeping")
NONE = "–"


class LearnerRow(NamedTuple):
    """A learner as the page shows it."""

    name: str
    link: str
    level: str
    """`good`, `notable` or `bad`."""
    state: str
    problem: str
    algorithm: str
    version: int
    age: str
    """Of the version: exact, or `≥` if it is older than this process."""
    clients: int
    queued: int
    steps_per_second: str
    mean_return: str
    episodes: int
    saved: str
    restarts: int


class ClientRow(NamedTuple):
    """A client as the page shows it."""

    name: str
    learner: str
    level: str
    """`good`, `notable`, `bad` or `gone`."""
    state: str
    version: str
    behind: int
    """Versions that its learner is ahead."""
    acts: str
    decisions: str
    p50: str
    p99: str
    fallback: str
    bad_inputs: str
    backlog: str
    dropped: str
    seen: str
    software: str
    note: str


def learner_link(address: str, name: str) -> str:
    """The page of a learner."""
    return f"/fleet/learner?{urlencode({'server': address, 'name': name})}"


def learner_rows(server: WatchedServer) -> list[LearnerRow]:
    """A row for each learner."""
    view = server.view
    if view.status is None:
        return []
    return [learner_row(server, each) for each in by_severity(view.status, "learner")]


def learner_row(server: WatchedServer, learner: Mapping[str, Any]) -> LearnerRow:
    """One learner."""
    name, state = learner["learner"], learner_state(learner)
    rate = server.history.steps_per_second(name)
    saved = learner.get("checkpoint_age_seconds")
    return LearnerRow(
        name=name,
        link=learner_link(server.address, name),
        level=_level(server.view.found, f"learner {name}", state.lower() in _GOOD_STATES),
        state=state,
        problem=learner["problem"],
        algorithm=learner["algorithm"],
        version=learner["version"],
        age=version_age(server, name),
        clients=sum(client["learner"] == name for client in server.view.connected),
        queued=learner["queued_segments"],
        steps_per_second=NONE if rate is None else f"{rate:,.0f}",
        mean_return=f"{learner['mean_return']:.1f}" if "mean_return" in learner else NONE,
        episodes=learner["episodes"],
        saved=NONE if saved is None else f"{shown_seconds(saved)} ago",
        restarts=learner["restarts"],
    )


def version_age(server: WatchedServer, learner: str) -> str:
    """How old the newest version of a learner is."""
    age = server.version_age(learner)
    if age is None:
        return NONE
    seconds, is_exact = age
    return shown_seconds(seconds) if is_exact else f"≥ {shown_seconds(seconds)}"


def client_rows(view: ServerView, clients: Sequence[Mapping[str, Any]] | None = None) -> list[ClientRow]:
    """A row for each client, or for each of some."""
    if view.status is None:
        return []
    versions = {learner["learner"]: learner["version"] for learner in view.status["learners"]}
    chosen = by_severity(view.status, "client")
    if clients is not None:
        chosen = [each for each in chosen if each in clients]
    return [_client_row(view, each, versions.get(each["learner"])) for each in chosen[:MOST_CLIENTS]]


def client_state(client: Mapping[str, Any]) -> str:
    """Whether a client is there."""
    if has_left(client):
        return f"left {shown_seconds(client['disconnected_seconds'])} ago"
    return "connected" if client["connected"] else "not connected"


def _client_row(view: ServerView, client: Mapping[str, Any], newest: int | None) -> ClientRow:
    about = f"client {client['client']}"
    is_there = client["connected"] and not has_left(client)
    report = client.get("report")
    version = (report or {}).get("version", client.get("version"))
    return ClientRow(
        name=client["client"],
        learner=client["learner"],
        level=_level(view.found, about, True) if is_there or client["warning"] else "gone",
        state=client_state(client),
        version=NONE if version is None else str(version),
        behind=max(0, newest - version) if version is not None and newest is not None else 0,
        acts=NONE if report is None else f"off: {report['off']}" if report["off"] else report["mode"] or "explore",
        decisions=NONE if report is None else f"{report['decisions']:,}",
        p50=NONE if report is None else decision_time(report["decision_time"], 0.5),
        p99=NONE if report is None else decision_time(report["decision_time"], 0.99),
        fallback=NONE if report is None else f"{report['fallback_decisions']:,}",
        bad_inputs=NONE if report is None else f"{report['bad_inputs']:,}",
        backlog=NONE if report is None else shown_bytes(report["backlog_bytes"]),
        dropped=NONE if report is None else shown_counts({name: n for name, n in report["drops"].items() if n}),
        seen=f"{shown_seconds(client['silent_seconds'])} ago",
        software=client["software"],
        note="; ".join(each.text for each in view.found if each.about == about and is_there),
    )


def _level(found: Sequence[Finding], about: str, is_good: bool) -> str:
    own = [each for each in found if each.about == about]
    if any(each.is_problem for each in own):
        return "bad"
    return "good" if is_good and not own else "notable"
