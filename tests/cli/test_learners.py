from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.clients import DQN, ScriptedClient, eventually, join_request
from tests.server.learners.test_reward_bounds import push_absurd
from tests.server.workers.test_fold import wait_for_version

from rl4sys.server import GrpcServer, InProcessTransport, ServerOptions, ServiceOptions

from .commands import Here

COMMANDS = (
    *("list", "show", "pause", "resume", "restart", "reset", "delete", "fork", "set", "freeze", "unfreeze", "accept"),
    *("audit", "export", "install", "warm-start"),
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    options = ServerOptions("127.0.0.1:0", tmp_path / "data", service=ServiceOptions(workers="threads"))
    started = GrpcServer(options)
    yield started
    started.drain()


@pytest.fixture
def client(server: GrpcServer) -> ScriptedClient:
    return ScriptedClient(InProcessTransport(server.service), join_request("a"))


@pytest.fixture
def address(server: GrpcServer) -> tuple[str, str]:
    return "--server", f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(rl4sys: Here, command: str) -> None:
    code, out, err = rl4sys("learners", command, "--help")
    text = " ".join(out.split())
    assert (code, err) == (0, "")
    assert f"Examples rl4sys learners {command}" in text
    assert "--server" in text


def test_the_list_shows_learners_with_their_state(
    rl4sys: Here, client: ScriptedClient, address: tuple[str, str]
) -> None:
    header, row = rl4sys("learners", "list", *address).out.splitlines()
    assert header.split()[:4] == ["learner", "algorithm", "state", "version"]
    assert row.split()[:4] == ["a", "PPO", "waiting", "0"]
    assert json.loads(rl4sys("learners", "list", "--json", *address).out)[0]["learner"] == "a"


def test_a_learner_is_paused_shown_and_resumed(rl4sys: Here, client: ScriptedClient, address: tuple[str, str]) -> None:
    code, out, _ = rl4sys("learners", "pause", "a", "--reason", "noon", *address)
    assert (code, out) == (0, "The learner 'a' is paused: experience is stored and waits.\n")
    assert "state                    paused" in rl4sys("learners", "show", "a", *address).out
    assert json.loads(rl4sys("learners", "resume", "a", "--json", *address).out)["message"].endswith("learns again.")
    assert json.loads(rl4sys("learners", "show", "a", "--json", *address).out)["state"] == "LEARNER_STATE_WAITING"


def test_returns_by_version_and_checkpoints_are_shown(
    rl4sys: Here, client: ScriptedClient, address: tuple[str, str]
) -> None:
    client.push(range(5))
    wait_for_version(client, 1)
    assert rl4sys("learners", "restart", "a", *address).code == 0
    eventually(lambda: "checkpoints" in rl4sys("learners", "show", "a", *address).out)
    shown = rl4sys("learners", "show", "a", *address).out
    assert re.search(r"^outcomes +version 0, episodes \d+, mean_return [-\d.]+$", shown, re.MULTILINE), shown
    assert re.search(r"^checkpoints +position 5, written 20\d\d-[^,]+, bytes \d+$", shown, re.MULTILINE), shown


def test_an_order_is_given_and_in_the_audit_log(rl4sys: Here, client: ScriptedClient, address: tuple[str, str]) -> None:
    code, out, _ = rl4sys("control", "a", "off", "--reason", "bad actions", *address)
    assert code == 0
    assert "The clients of a are ordered: off" in out
    assert "0 of 1 connected clients have reported to obey" in out
    assert "To end that: rl4sys control a follow" in rl4sys("learners", "show", "a", *address).out
    (entry,) = json.loads(rl4sys("learners", "audit", "--json", *address).out)
    assert (entry["command"], entry["reason"], entry["result"]) == ("control", "bad actions", "OK")
    assert "@" in entry["operator_name"]
    assert 'control {"mode": "off"}' in rl4sys("learners", "audit", *address).out


def test_a_refused_command_is_one_line(rl4sys: Here, client: ScriptedClient, address: tuple[str, str]) -> None:
    code, out, err = rl4sys("learners", "pause", "b", *address)
    assert (code, out) == (2, "")
    assert err == "error: There is no learner 'b'. There are: a. (NOT_FOUND)\n"


def test_an_order_to_stop_needs_a_reason(rl4sys: Here, client: ScriptedClient, address: tuple[str, str]) -> None:
    code, _, err = rl4sys("control", "a", "off", *address)
    assert code == 2
    assert "has no reason. Say why" in err


@pytest.mark.parametrize("command", ["reset", "delete", "accept"])
def test_what_cannot_be_undone_is_confirmed(
    rl4sys: Here, client: ScriptedClient, address: tuple[str, str], command: str
) -> None:
    code, _, err = rl4sys("learners", command, "a", *address)
    assert code == 2
    assert "It has 1 clients and is at version 0" in err
    assert "give --yes" in err


def test_a_setting_without_a_value_is_explained(rl4sys: Here, address: tuple[str, str]) -> None:
    code, _, err = rl4sys("learners", "set", "a", "lr", *address)
    assert code == 2
    assert "write KEY=VALUE" in " ".join(err.split())


def test_a_server_that_is_away_is_named(rl4sys: Here) -> None:
    code, _, err = rl4sys("learners", "list", "--server", "127.0.0.1:1")
    assert code == 2
    assert "127.0.0.1:1" in err
    assert "Is it running?" in err


def test_a_learner_starts_from_the_log_of_another_one(
    rl4sys: Here, server: GrpcServer, client: ScriptedClient, address: tuple[str, str], tmp_path: Path
) -> None:
    client.push(range(20))
    target = ScriptedClient(InProcessTransport(server.service), join_request("b", DQN))
    source = tmp_path / "data" / "learners" / "a"
    code, out, _ = rl4sys("learners", "warm-start", "b", "--data", str(source), *address)
    assert (code, out) == (0, f"b has 20 segments of {source} in its log, and learns from them.\n")
    wait_for_version(target, 1)
    (entry,) = json.loads(rl4sys("learners", "audit", "b", "--json", *address).out)[1:]
    assert (entry["command"], entry["result"]) == ("warm-start", "OK")
    code, _, err = rl4sys("learners", "warm-start", "a", "--data", str(source), *address)
    assert code == 2
    assert "fresh decisions of its own policy" in err


def test_a_warm_start_needs_one_source(rl4sys: Here, client: ScriptedClient, address: tuple[str, str]) -> None:
    code, _, err = rl4sys("learners", "warm-start", "a", *address)
    assert code == 2
    assert "Name either a RUN or --data PATH." in err


def test_the_status_names_the_client_whose_absurd_rewards_are_refused(
    rl4sys: Here, server: GrpcServer, address: tuple[str, str]
) -> None:
    transport = InProcessTransport(server.service)
    good, bad = (ScriptedClient(transport, join_request(name, policy_id="fleet")) for name in ("good", "bad"))
    good.push(range(3))
    push_absurd(bad, 0, 1e30)
    push_absurd(bad, 1, -1e30)
    clients = json.loads(rl4sys("status", "--json", address[1]).out)["clients"]
    refused = {client["client"]: client["refused_segments"] for client in clients}
    assert refused == {"good": {}, "bad": {"REWARD_BOUNDS": 2}}
    assert "2 reward_bounds" in " ".join(rl4sys("status", address[1]).out.split())
