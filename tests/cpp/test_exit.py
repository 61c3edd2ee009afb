"""C++ programs that end while an agent is open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import attempt, needs_cpp

pytestmark = [needs_cpp, pytest.mark.slow]


def test_static_agents_and_episodes_end_in_any_order_and_lose_nothing(tmp_path: Path) -> None:
    server, config = FakeServer(small_policy(sees=2)), tmp_path / "agent.json"
    with listening(server, "127.0.0.1:0") as (address, _):
        config.write_text(json.dumps({"client_id": "one", "server": address}))
        done = attempt("leave-open", config)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(segment.steps for segment in server.segments()) == [1, 1]
