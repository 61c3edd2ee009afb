"""What is known about a server, also while it is away."""

from __future__ import annotations

from tests.ui.fake_servers import AWAY, CLIENT, LEARNER, FakeSource, reply

from rl4sys.ui.fleet_rows import client_rows, learner_rows
from rl4sys.ui.watched_server import WatchedServer
from rl4sys.wire.calls import CallFailed, Code


def watched(source: FakeSource) -> WatchedServer:
    times = iter(range(1_000_000_000, 1_000_001_000, 2))
    server = WatchedServer("train:1", source, lambda: float(next(times)))
    server.ask()
    return server


def test_a_server_that_goes_away_is_one_sentence_and_what_was_known_stays() -> None:
    source = FakeSource()
    server = watched(source)
    assert server.view.sentence == "well: 1 learner, 2 connected clients"
    source.error = AWAY
    server.ask()
    (problem,) = server.view.problems
    assert "does not answer since" in problem.text
    assert learner_rows(server)[0].version == 41
    source.error = None
    server.ask()
    assert server.view.problems == []


def test_a_server_that_refuses_says_why() -> None:
    source = FakeSource()
    source.error = CallFailed(Code.UNAUTHENTICATED, "There is no token.")
    assert watched(source).view.sentence == "train:1 refuses: There is no token. (UNAUTHENTICATED)"


def test_the_age_of_a_version_is_exact_once_it_was_seen_to_change() -> None:
    source = FakeSource()
    server = watched(source)
    server.ask()
    assert learner_rows(server)[0].age == "≥ 2 s"
    source.reply = reply(learners=[LEARNER | {"version": 42}])
    server.ask()
    server.ask()
    assert learner_rows(server)[0].age == "2 s"


def test_rows_show_what_an_operator_looks_for() -> None:
    server = watched(FakeSource())
    (learner,) = learner_rows(server)
    assert (learner.level, learner.state, learner.mean_return, learner.clients) == ("good", "learning", "12.5", 2)
    client = client_rows(server.view)[0]
    assert (client.version, client.behind, client.acts, client.decisions) == ("40", 1, "explore", "1,000")
    assert (client.p50, client.p99, client.fallback, client.bad_inputs) == ("<4 µs", "<16 µs", "7", "2")
    assert (client.backlog, client.dropped, client.seen) == ("2.0 kB", "3 outbox_full", "1 s ago")


def test_a_client_whose_connection_ended_has_left_and_comes_with_a_note() -> None:
    source = FakeSource(reply(clients=[CLIENT, CLIENT | {"client": "gone", "disconnected_seconds": 3.0}]))
    server = watched(source)
    states = {row.name: (row.level, row.state) for row in client_rows(server.view)}
    assert states == {"gone": ("gone", "left 3 s ago"), "node-1": ("notable", "connected")}
    assert any("connection ended 3 s ago" in note.text for note in server.view.notes)
    assert len(server.view.connected) == 1
