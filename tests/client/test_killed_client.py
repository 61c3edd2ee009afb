from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.client.agents import agent_on, seen, steps
from tests.client.fake_server import FakeServer


def test_the_outbox_of_a_killed_client_is_sent_by_the_next_with_its_keys(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.client.killed_client", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as client:
        assert client.stdout is not None
        assert client.stdout.readline().strip() == "20"
        client.kill()
    server = FakeServer()
    with agent_on(server, outbox=str(tmp_path)) as agent, agent.episode() as episode:
        steps(episode, 1)
        episode.end(seen(1))
        assert agent.flush()
    firsts = sorted(s.observation["observation"][0, 0] for s in server.segments())
    assert firsts == sorted([0.0, *(10.0 * number for number in range(20))])
    assert len({epoch for _, epoch, _ in server.stored}) == 2


def test_unsent_segments_are_sent_at_the_next_start(tmp_path: Path) -> None:
    away = FakeServer()
    away.refuse = lambda segment: None
    with agent_on(away, outbox=str(tmp_path), send_interval=100.0) as agent:
        with agent.episode() as episode:
            steps(episode, 4)
            episode.end(seen(4))
        agent.close(timeout=0.0)
    server = FakeServer()
    with agent_on(server, outbox=str(tmp_path)) as agent:
        assert agent.flush()
    assert sum(s.steps for s in [*server.segments(), *away.segments()]) == 4
