"""The program's signals are for its own threads."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import needs_cpp, tool

pytestmark = [needs_cpp, pytest.mark.slow]

PROGRAMS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD, signal.SIGPROF]


@pytest.mark.parametrize("decide", ["local", "server"])
def test_all_threads_of_the_client_and_of_grpc_block_signals(decide: str, tmp_path: Path) -> None:
    config = tmp_path / "agent.json"
    with listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0") as (address, _):
        config.write_text(json.dumps({"client_id": "one", "server": address, "decide": decide}))
        threads = json.loads(tool("list-threads", config))
    names = {name for name, _ in threads}
    assert {"rl4sys-courier", "rl4sys-watcher", "grpc_global_tim"} <= names
    unblocked = [name for name, blocked in threads for number in PROGRAMS if not blocked >> (number - 1) & 1]
    assert unblocked == []
