"""Commands to a learner: offered where they make sense, complete before they are sent, refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.server.clients import ScriptedClient, join_request
from tests.server.conftest import THREADS
from tests.server.loopback import StubTransport
from tests.ui.fake_servers import LEARNER, reply

from rl4sys.operations.status_tables import message_values
from rl4sys.server import GrpcServer, ServerOptions
from rl4sys.ui.app import build_app
from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.operator_commands import WrongCommand, checked_command, offered
from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.security import Security
from rl4sys.ui.server_access import ServerAccess
from rl4sys.ui.settings import UiSettings

_PAGE = "http://127.0.0.1:8265"
_PATH = "/fleet/learner?name=a"
_VIEWER, _CLIENT, _OPERATOR = ("a-viewer-token-0123456789", "a-client-token-0123456789", "an-operator-token-0123456789")


def names(**changes: Any) -> list[str]:
    learner = message_values(reply(learners=[LEARNER | changes]))["learners"][0]
    return [command.name for command in offered(learner)]


def test_commands_are_offered_where_they_make_sense() -> None:
    assert names() == ["off", "frozen", "pause", "freeze", "restart", "reset"]
    assert names(control="off") == ["frozen", "follow", "pause", "freeze", "restart", "reset"]
    assert "resume" in names(state="LEARNER_STATE_PAUSED")
    assert "unfreeze" in names(frozen=True)
    assert "accept" in names(other_lineages=[{"lineage": "x", "version": 1, "clients": 1}])


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"command": "explode", "reason": "why"}, "There is no command 'explode'"),
        ({"command": "off", "reason": "  "}, "A reason is needed"),
        ({"command": "reset", "reason": "why", "learner": "a"}, "type the name of the learner"),
    ],
)
def test_a_command_that_is_not_complete_is_refused(fields: dict[str, str], sentence: str) -> None:
    with pytest.raises(WrongCommand, match=sentence):
        checked_command(fields)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    (tmp_path / "tokens").write_text(f"{_VIEWER} role=viewer *\n{_CLIENT} a\n{_OPERATOR} role=operator *\n")
    for token, name in ((_VIEWER, "viewer"), (_OPERATOR, "operator")):
        (tmp_path / name).write_text(token)
    options = ServerOptions("127.0.0.1:0", tmp_path / "data", token_file=tmp_path / "tokens", service=THREADS)
    found = GrpcServer(options)
    ScriptedClient(StubTransport(found.port, _CLIENT), join_request("a"))
    yield found
    found.drain()


def opened(server: GrpcServer, access: ServerAccess) -> TestClient:
    """The pages about a server, in a browser that is signed in."""
    sessions, settings = BrowserSessions(), UiSettings(servers=(f"127.0.0.1:{server.port}",), access=access)
    client = TestClient(Security(build_app(settings), sessions, PageAddress(), 8265), base_url=_PAGE)
    client.__enter__()
    client.get(f"/?token={sessions.link_token}")
    return client


def send(client: TestClient, shown: str, **fields: str) -> Any:
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', shown))
    return client.post("/fleet/command", data=hidden | fields, headers={"origin": _PAGE})


def test_a_viewer_sees_no_commands_and_cannot_give_any(server: GrpcServer, tmp_path: Path) -> None:
    client = opened(server, ServerAccess(token_file=tmp_path / "viewer"))
    shown = client.get(_PATH).text
    assert 'name="command"' not in shown
    assert "Audit" not in shown
    answer = send(client, shown, command="off", reason="why")
    assert (answer.status_code, "Nothing was done" in answer.text) == (409, True)
    assert client.get(_PATH.replace("learner?", "learner.json?")).json()["control"] == "follow"
    client.__exit__(None, None, None)


def test_an_operator_gives_a_command_and_the_audit_log_shows_it(server: GrpcServer, tmp_path: Path) -> None:
    access = ServerAccess(token_file=tmp_path / "viewer", operator_token_file=tmp_path / "operator")
    client = opened(server, access)
    shown = client.get(_PATH).text
    answer = send(client, shown, command="pause", reason="the machine is needed").text
    assert "Pause learning" in answer
    assert "done." in answer
    assert "the machine is needed" in answer.partition("Audit")[2]
    assert send(client, shown, command="resume", reason="again").status_code == 409
    entries = client.get("/fleet/learner.json?name=a&table=audit").json()
    assert [(each["command"], each["reason"]) for each in entries] == [("pause", "the machine is needed")]
    client.__exit__(None, None, None)


def test_what_the_server_refuses_is_shown_with_its_reason(server: GrpcServer, tmp_path: Path) -> None:
    client = opened(server, ServerAccess(token_file=tmp_path / "viewer", operator_token_file=tmp_path / "viewer"))
    shown = client.get(_PATH).text
    assert "The server does not show its audit log" in shown
    answer = send(client, shown, command="pause", reason="why").text
    assert "refused." in answer
    assert "PERMISSION_DENIED" in answer
    client.__exit__(None, None, None)
