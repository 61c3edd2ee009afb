"""C++ programs that fork before and after they connect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import needs_cpp, tool

pytestmark = [needs_cpp, pytest.mark.slow]

CHILDREN = 10


def test_children_connect_before_their_parent_does_and_are_refused_after(tmp_path: Path) -> None:
    server, config = FakeServer(small_policy(sees=2)), tmp_path / "agent.json"
    with listening(server, "127.0.0.1:0") as (address, _):
        config.write_text(json.dumps({"client_id": "parent", "server": address, "send_interval": 0.0}))
        found = json.loads(tool("run-forked", config, str(CHILDREN)))
    assert found == {"before": 0, "after": 0, "flushed": True}
    assert {join.client for join in server.joins} == {"parent", *(f"child-{number}" for number in range(CHILDREN))}
    assert sum(segment.steps for segment in server.segments()) == CHILDREN + 1
