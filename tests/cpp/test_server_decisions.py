"""C++ clients with `decide: server`, of a real server that is killed meanwhile."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cpp.programs import Server, find_tool, needs_cpp, write_config

from rl4sys.client import connect
from rl4sys.seeding import Seeds

pytestmark = [needs_cpp, pytest.mark.slow]

ASKING = {"decide": "server", "decide_timeout": 10.0, "buffer": {"size": 100_000}}


class AskedClient:
    """A C++ client that takes as many decisions as it is asked for."""

    def __init__(self, config: Path) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen([str(find_tool()), "run-asked", str(config)], **pipes)  # type: ignore[call-overload]

    def __enter__(self) -> AskedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def decide(self, count: int) -> dict[str, Any]:
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def test_clients_in_two_languages_get_the_decisions_that_a_local_one_takes(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, **ASKING)
        with AskedClient(config) as client:
            asked = client.decide(200)
        assert (asked["fallbacks"], asked["unanswered"]) == (0, 0)
        seen = [[step % 7 / 8.0, step % 5 / 4.0] for step in range(200)]
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
