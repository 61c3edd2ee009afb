"""C++ clients with `decide: server`, of a real server that is killed meanwhile."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.cpp.programs import AskedClient, Server, needs_cpp, observed, write_config

from rl4sys.client import connect
from rl4sys.seeding import Seeds

pytestmark = [needs_cpp, pytest.mark.slow]

ASKING = {"decide": "server", "decide_timeout": 10.0, "buffer": {"size": 100_000}}


def test_clients_in_two_languages_get_the_decisions_that_a_local_one_takes(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, **ASKING)
        with AskedClient(config) as client:
            asked = client.decide(200)
        assert (asked["fallbacks"], asked["unanswered"]) == (0, 0)
        seen = [observed(step) for step in range(200)]
        noise_seed = Seeds(1).integer("decisions")
        settings = json.loads(config.read_text()) | {"network": None, "buffer": None, "algorithm": None}
        for other in ({}, {"decide": "local", "seed": noise_seed}):
            with connect(settings | other, fallback=lambda observation: 1) as agent, agent.episode() as episode:
                assert [episode.act(row) for row in seen] == asked["choices"]
        local = write_config(
            tmp_path / "local.json", server, algorithm=None, network=None, buffer=None, seed=noise_seed
        )
        with AskedClient(local) as client:
            assert client.decide(200)["choices"] == asked["choices"]


def test_a_killed_server_is_replaced_by_the_fallback_until_it_is_back(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, **ASKING | {"decide_timeout": 1.0})
        with AskedClient(config) as client:
            assert client.decide(20)["fallbacks"] == 0
            server.stop(signal.SIGKILL)
            away = client.decide(50)
            assert away["choices"] == [1] * 50
            assert away["unanswered"] == 50
            server.start()
            while client.decide(1)["fallbacks"]:
                pass
