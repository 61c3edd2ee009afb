"""The kill switch: orders of operators, the kill file and the lease."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.client.agents import SETTINGS, agent_on, seen, steps
from tests.client.fake_server import FakeServer, some_weights
from tests.client.waiting import until

from rl4sys.client import ConnectError, PolicyOff
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.control_order import ControlFile, ControlMode, ControlOrder
from rl4sys.client.governor import Governor
from rl4sys.client.guard import Guard
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2


def away(call: str) -> None:
    raise CallFailed(Code.UNAVAILABLE, "away")


def test_off_lets_the_fallback_decide_until_the_operator_lets_clients_follow() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3) as agent, agent.episode() as episode:
        server.give_order("off", 10, "it oscillates")
        until(lambda: agent.health().off == "control")
        assert [episode.act(seen(step)) for step in range(20)] == [3] * 20
        assert agent.health().control == "off: it oscillates"
        server.give_order("follow", 11)
        until(lambda: agent.health().off == "")
        episode.act(seen(20))
        assert (agent.health().decisions, agent.health().fallback_decisions) == (1, 20)


def test_off_without_a_fallback_is_one_clear_error() -> None:
    server = FakeServer()
    with agent_on(server) as agent, agent.episode() as episode:
        steps(episode, 2)
        server.give_order("off", 10)
        until(lambda: agent.health().off == "control")
        with pytest.raises(PolicyOff, match="an operator ordered it off"):
            episode.act(seen(2))
        server.give_order("follow", 11)
        until(lambda: agent.health().off == "")
        steps(episode, 1, first=2)
        episode.end(seen(3))
    assert sum(segment.steps for segment in server.segments()) == 3


def test_frozen_keeps_the_version_and_follow_takes_the_newest() -> None:
    server = FakeServer()
    with agent_on(server) as agent:
        server.give_order("frozen", 10)
        until(lambda: agent.health().control_sequence == 10)
        for seed in range(1, 4):
            server.publish(some_weights(server.spec, seed))
        server.give_order("frozen", 11)
        until(lambda: agent.health().control_sequence == 11)
        assert agent.health().version == 0
        server.give_order("follow", 12)
        until(lambda: agent.health().version == 3)
        server.publish(some_weights(server.spec, 4))
        until(lambda: agent.health().version == 4)
        assert agent.health().damaged_patches == 0


def test_an_earlier_order_that_comes_late_is_ignored() -> None:
    governor = Governor()
    assert governor.obey(ControlOrder(ControlMode.OFF, 20))
    assert not governor.obey(ControlOrder(ControlMode.FOLLOW, 20))
    assert not governor.obey(ControlOrder(ControlMode.FOLLOW, 19))
    assert governor.plan.off == "control"
    assert governor.obey(ControlOrder(ControlMode.FOLLOW, 21))
    assert governor.plan.off == "no_policy"


def test_an_order_is_remembered_while_the_server_is_away(tmp_path: Path) -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3, cache=str(tmp_path)) as agent:
        server.give_order("off", 10)
        until(lambda: (tmp_path / "test.control").exists())
    server.before = away
    with agent_on(server, lambda observation: 3, cache=str(tmp_path), timeout=0.05) as agent:
        assert agent.health().off == "control"
        assert agent.episode().act(seen(0)) == 3


def test_an_order_survives_a_server_that_lost_it(tmp_path: Path) -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3, cache=str(tmp_path)):
        server.give_order("off", 10)
        until(lambda: (tmp_path / "test.control").exists())
    server.order = None
    with agent_on(server, lambda observation: 3, cache=str(tmp_path)) as agent:
        assert agent.health().off == "control"
        server.give_order("follow", 9)
        server.give_order("follow", 11)
        until(lambda: agent.health().off == "")


def test_an_order_survives_a_killed_client(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal\n"
        "from rl4sys.client.control_order import *\n"
        f"ControlFile(pathlib.Path({str(tmp_path)!r}), 'a').save(ControlOrder(ControlMode.OFF, 7, 'why', 'me'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    assert ControlFile(tmp_path, "a").load() == ControlOrder(ControlMode.OFF, 7, "why", "me")
    assert os.listdir(tmp_path) == ["a.control"]


def test_an_earlier_order_that_is_written_late_does_not_replace_a_later_one(tmp_path: Path) -> None:
    file = ControlFile(tmp_path, "a")
    file.save(ControlOrder(ControlMode.OFF, 8))
    file.save(ControlOrder(ControlMode.FOLLOW, 7))
    assert file.load().sequence == 8


def test_an_order_that_cannot_be_read_counts_as_off(tmp_path: Path) -> None:
    (tmp_path / "a.control").write_text("{")
    order = ControlFile(tmp_path, "a").load()
    assert (order.mode, order.sequence) == (ControlMode.OFF, 0)


def test_an_order_of_a_later_protocol_is_obeyed_as_off() -> None:
    assert ControlOrder.from_message(training_pb2.Control(mode=17, sequence=1)).mode is ControlMode.OFF  # type: ignore[arg-type]


def test_the_order_in_the_reply_to_join_is_obeyed_before_the_first_decision() -> None:
    server = FakeServer()
    server.order = training_pb2.Control(mode=training_pb2.CONTROL_MODE_OFF, sequence=1)
    with agent_on(server, lambda observation: 3) as agent:
        assert agent.episode().act(seen(0)) == 3


def test_a_kill_file_turns_the_policy_off_and_on_again(tmp_path: Path) -> None:
    kill_file = tmp_path / "kill"
    kill_file.touch()
    with agent_on(FakeServer(), lambda observation: 3, kill_file=str(kill_file)) as agent:
        episode = agent.episode()
        assert (agent.health().off, episode.act(seen(0))) == ("kill_file", 3)
        kill_file.unlink()
        until(lambda: agent.health().off == "")


def test_a_kill_file_that_cannot_be_looked_at_counts(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    governor = Governor()
    Guard(governor, AgentStatus(), lambda: 0.0, tmp_path / "loop", None)
    assert governor.plan.off == "kill_file"


def test_a_silent_server_ends_the_lease_until_it_is_heard_again() -> None:
    governor, status, now = Governor(), AgentStatus(), [0.0]
    guard = Guard(governor, status, lambda: now[0], None, lease=2.0)
    offs = []
    for time, heard in ((1.0, False), (2.5, False), (3.0, True), (4.0, False), (5.5, False)):
        now[0] = time
        if heard:
            status.succeeded("watcher")
        guard.look()
        offs.append(governor.plan.off)
    assert offs == ["no_policy", "lease", "no_policy", "no_policy", "lease"]


def test_a_lease_is_kept_by_a_server_that_takes_no_reports() -> None:
    server = FakeServer()
    asked: list[str] = []
    with agent_on(server, lambda observation: 3, lease=0.3) as agent:
        server.before = asked.append
        until(lambda: asked.count("pull") >= 5)
        assert agent.health().off == ""
        server.before = away
        until(lambda: agent.health().off == "lease")
        assert agent.episode().act(seen(0)) == 3
        server.before = lambda call: None
        until(lambda: agent.health().off == "")


def test_acting_does_not_wait_while_orders_arrive() -> None:
    server = FakeServer()
    with agent_on(server, lambda observation: 3) as agent, agent.episode() as episode:
        for sequence in range(1, 40):
            server.give_order("off" if sequence % 2 else "follow", sequence)
            for step in range(20):
                assert episode.act(seen(step)) in range(4)
        until(lambda: agent.health().control_sequence == 39)
        assert agent.health().off == "control"


def test_a_refused_client_is_refused_even_when_it_is_off(tmp_path: Path) -> None:
    ControlFile(tmp_path, "test").save(ControlOrder(ControlMode.OFF, 7))
    server = FakeServer()
    server.before = lambda call: (_ for _ in ()).throw(CallFailed(Code.UNAUTHENTICATED, "no"))
    with pytest.raises(ConnectError, match="refuses"):
        agent_on(server, cache=str(tmp_path), client_id=SETTINGS["client_id"])
