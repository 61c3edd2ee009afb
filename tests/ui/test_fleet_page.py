"""The pages of servers and learners, as a browser gets them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.testclient import TestClient
from tests.ui.fake_servers import AWAY, CLIENT, LEARNER, FakeSource, fake_fleet, reply

from rl4sys.operations.status_tables import message_values, with_findings
from rl4sys.ui.app import build_app
from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.security import Security
from rl4sys.ui.settings import UiSettings

_PORT = 8265


@contextmanager
def pages(*sources: FakeSource, seconds: float = 0.02) -> Iterator[TestClient]:
    sessions, names = BrowserSessions(), tuple(f"server-{n}:1" for n, _ in enumerate(sources, 1))
    fleet = fake_fleet(*sources, seconds=seconds)
    app = Security(build_app(UiSettings(servers=names), fleet), sessions, PageAddress(), _PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{_PORT}") as client:
        client.get(f"/?token={sessions.link_token}")
        yield client


def test_the_first_line_says_that_all_is_well() -> None:
    with pages(FakeSource()) as client:
        assert "All is well: 1 server, 1 learner, 2 connected clients" in client.get("/fleet").text


def test_the_first_line_counts_problems_and_names_them_with_a_command() -> None:
    failed = LEARNER | {"state": "LEARNER_STATE_FAILED", "problem": "NaN in the loss"}
    with pages(FakeSource(reply(learners=[failed]))) as client:
        shown = client.get("/fleet").text
    assert "1 problem with 1 server, 1 learner, 2 connected clients" in shown
    assert "FAILED: NaN in the loss" in shown
    assert 'data-copy="rl4sys learners restart shared~cache"' in shown


def test_a_server_that_is_away_is_named_and_the_others_are_shown() -> None:
    away = FakeSource()
    away.error = AWAY
    with pages(FakeSource(), away) as client:
        shown = client.get("/fleet").text
        assert client.get("/fleet.json?server=server-2:1").status_code == 404
    assert "server server-2:1</strong> does not answer" in shown
    assert "shared~cache" in shown


def test_json_is_that_of_the_command_and_csv_has_every_client() -> None:
    clients = [CLIENT | {"client": f"node-{n}"} for n in range(300)]
    source = FakeSource(reply(clients=clients))
    with pages(source) as client:
        assert client.get("/fleet.json?server=server-1:1").json() == with_findings(message_values(source.reply))
        assert client.get("/fleet.json").json()[0]["address"] == "server-1:1"
        rows = list(csv.DictReader(io.StringIO(client.get("/fleet/clients.csv").text)))
        assert "100 more clients are not listed here" in client.get("/fleet").text
    assert len(rows) == 300
    assert rows[0]["report.drops.outbox_full"] == "3"


def test_the_page_of_a_learner_shows_who_runs_which_version_and_who_has_obeyed() -> None:
    ordered = LEARNER | {"control": "off", "control_reason": "smoke", "control_sequence": 9}
    report = CLIENT["report"] | {"control_sequence": 9, "off": "control"}  # type: ignore[operator]
    clients = [CLIENT | {"report": report}, CLIENT | {"client": "late"}, CLIENT | {"client": "new", "report": None}]
    with pages(FakeSource(reply(learners=[ordered], clients=clients))) as client:
        shown = " ".join(client.get("/fleet/learner?server=server-1:1&name=shared~cache").text.split())
    assert 'late,</span> <span class="whole">node-1</span>' in shown
    assert 'node-1</th> <td class="good">has obeyed' in shown
    assert 'late</th> <td class="warn">not yet' in shown
    assert 'new</th> <td class="warn">has not reported' in shown


def test_the_tables_of_a_learner_are_there_as_json_and_csv() -> None:
    ordered = LEARNER | {"control": "off", "control_sequence": 9}
    source = FakeSource(reply(learners=[ordered]))
    status = message_values(source.reply)
    with pages(source) as client:
        address = "/fleet/learner.{}?server=server-1:1&name=shared~cache"
        shown = client.get("/fleet/learner?server=server-1:1&name=shared~cache").text
        # What `rl4sys learners show --json` prints.
        assert client.get(address.format("json")).json() == status["learners"][0] | {
            "clients_listed": status["clients"]
        }
        assert _rows(client.get(address.format("csv")).text)[0]["version"] == "41"
        for table, count in {"versions": 2, "clients": 2, "obedience": 2}.items():
            assert f"name=shared~cache&amp;table={table}" in shown
            assert len(client.get(f"{address.format('json')}&table={table}").json()) == count
            assert len(_rows(client.get(f"{address.format('csv')}&table={table}").text)) == count


def test_the_page_of_a_learner_shows_outcomes_and_checkpoints() -> None:
    outcomes = [
        {"version": 39, "episodes": 1_200, "mean_return": 8.5},
        {"version": 41, "episodes": 3, "mean_return": 9},
    ]
    saved = [{"position": 900, "written": 1.7e9, "bytes": 5_000}, {"position": 990, "written": 1.7e9, "bytes": 7_000}]
    learner = LEARNER | {"outcomes": outcomes, "checkpoints": saved, "log_end": 1_000}
    with pages(FakeSource(reply(learners=[learner]))) as client:
        shown = " ".join(client.get("/fleet/learner?name=shared~cache").text.split())
        table = "/fleet/learner.{}?name=shared~cache&table={}"
        versions = client.get(table.format("json", "versions")).json()
        checkpoints = _rows(client.get(table.format("csv", "checkpoints")).text)
    assert '39</th> <td class="n">1,200</td><td class="n">8.5</td> <td class="n">0</td>' in shown
    assert '990</th> <td class="time">' in shown
    assert [(each["version"], each["episodes"], each["mean_return"]) for each in versions] == [
        (41, 3, 9.0),
        (40, 0, None),
        (39, 1_200, 8.5),
    ]
    assert [(each["position"], each["records_after"]) for each in checkpoints] == [("990", "10"), ("900", "100")]


def test_what_a_learner_does_not_have_yet_is_absent_from_its_page() -> None:
    with pages(FakeSource()) as client:
        shown = client.get("/fleet/learner?name=shared~cache").text
    assert "Checkpoints</h2>" not in shown
    assert ">Episodes</th>" not in shown


def test_a_table_of_a_learner_that_is_not_there_is_one_sentence() -> None:
    with pages(FakeSource()) as client:
        for table, sentence in {"weights": "There is no table", "audit": "does not show its audit log"}.items():
            answer = client.get(f"/fleet/learner.csv?name=shared~cache&table={table}")
            assert (answer.status_code, sentence in answer.text) == (404, True)


def test_spreadsheets_take_no_cell_for_a_formula() -> None:
    formula = "=HYPERLINK(1)"
    client = CLIENT | {"client": "@node", "software": formula, "warning": "+1", "refused_segments": {formula: 1}}
    source = FakeSource(reply(learners=[LEARNER | {"algorithm": formula, "learner": "-a"}], clients=[client]))
    with pages(source) as browser:
        tables = [
            *("/fleet/learners.csv", "/fleet/clients.csv?server=server-1:1", "/fleet/learner.csv?name=-a"),
            *(f"/fleet/learner.csv?name=-a&table={table}" for table in ("versions", "clients")),
        ]
        texts = [browser.get(address).text for address in tables]
    assert "'=HYPERLINK(1)" in texts[0]
    assert "'=HYPERLINK(1)" in texts[1]
    cells = [cell for text in texts for line in csv.reader(io.StringIO(text)) for cell in line]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_learner_or_server_that_is_not_there_is_one_sentence() -> None:
    with pages(FakeSource()) as client:
        for address, sentence in {
            "/fleet/learner?name=unknown": "has no learner",
            "/fleet/learner?server=elsewhere:1&name=shared~cache": "is not shown here",
            "/fleet/history.json?server=elsewhere:1": "is not shown here",
        }.items():
            answer = client.get(address)
            assert answer.status_code == 404
            assert sentence in answer.text


def test_a_server_is_asked_once_for_all_pages() -> None:
    source = FakeSource()
    with pages(source, seconds=1_000.0) as client:
        for _ in range(5):
            client.get("/fleet")
    assert source.asked == 1
