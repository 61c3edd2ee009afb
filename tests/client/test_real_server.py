from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.client.agents import SETTINGS, seen, steps

from rl4sys.client import connect, run_environment
from rl4sys.environments.candidate_choice import CandidateChoice

server = pytest.importorskip("rl4sys.server")


@pytest.mark.slow
def test_an_agent_learns_from_the_training_service(tmp_path: Path) -> None:
    service = server.TrainingService(tmp_path, server.ServiceOptions(workers="threads"))
    transport = server.InProcessTransport(service)
    settings = SETTINGS | {"algorithm": {"name": "ppo", "epochs": 1}, "buffer": {"size": 200}, "timeout": 60}
    try:
        with connect(settings, transport=transport) as agent:
            deadline = time.monotonic() + 60.0
            # Many episodes are not recorded, since the learner cannot use them in time.
            while (agent.health().version or 0) < 2 and time.monotonic() < deadline:
                with agent.episode() as episode:
                    steps(episode, 100)
                    episode.end(seen(100))
                assert agent.flush()
            health = agent.health()
        assert (health.version or 0) >= 2
        assert health.drops == {}
    finally:
        service.drain(10.0)


@pytest.mark.slow
def test_an_agent_learns_to_choose_among_candidates(tmp_path: Path) -> None:
    service = server.TrainingService(tmp_path, server.ServiceOptions(workers="threads"))
    spaces = {"candidates": [16, 3], "observation": {"context": 1}, "action": None}
    learner = {"algorithm": {"name": "ppo", "epochs": 1}, "network": {"actor": {"type": "candidates"}}}
    settings = SETTINGS | spaces | learner | {"buffer": {"size": 200}, "timeout": 60}
    environment = CandidateChoice(most=16, length=100)
    try:
        with connect(settings, transport=server.InProcessTransport(service)) as agent:
            deadline = time.monotonic() + 60.0
            while (agent.health().version or 0) < 2 and time.monotonic() < deadline:
                run_environment(agent, environment, seed=0)
                assert agent.flush()
            health = agent.health()
        assert ((health.version or 0) >= 2, health.drops, health.bad_inputs) == (True, {}, 0)
    finally:
        service.drain(10.0)
