"""The kill switch of C++ clients, with a real server and a real kill -9."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cpp.programs import Server, needs_cpp, running, write_config

pytestmark = [needs_cpp, pytest.mark.slow]


def next_line(client: subprocess.Popen[str]) -> dict[str, Any]:
    """What the client prints next: who decides from now on."""
    assert client.stdout is not None
    line = client.stdout.readline()
    assert line, client.communicate()[1]
    found: dict[str, Any] = json.loads(line)
    return found


def order(server: Server, mode: str) -> tuple[int, int]:
    """Give an order with the command line; returns how many clients report to obey, and how many are connected."""
    where = ["--server", f"127.0.0.1:{server.port}", "--reason", "a test", "--wait", "30", "--json"]
    command = [sys.executable, "-m", "rl4sys.cli", "control", "shared~shared", mode, *where]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    return found["obeying_clients"], found["connected_clients"]


def test_off_survives_the_death_of_the_client_and_the_absence_of_the_server(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server, cache="cache")
        with running("run-controlled", config, "60") as client:
            assert next_line(client)["off"] == ""
            assert order(server, "off") == (1, 1)
            assert next_line(client)["off"] == "control"
            client.kill()
    config.write_text(json.dumps(json.loads(config.read_text()) | {"timeout": 0.2}))
    with running("run-controlled", config, "60") as client:
        found = next_line(client)
        assert (found["off"], found["control"].split(" ")[0]) == ("control", "off")
        server.start()
        try:
            order(server, "follow")
            assert next_line(client)["off"] == ""
        finally:
            server.stop()


def test_a_client_is_measured_by_order_of_an_operator(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        config = write_config(tmp_path / "agent.json", server)
        with running("run-controlled", config, "120") as client:
            assert next_line(client)["off"] == ""
            values = profile(server, json.loads(config.read_text())["client_id"], tmp_path / "out")
            assert client.poll() is None
    assert values["floor_microseconds"] > 0
    levels = {level["level"]: level for level in values["levels"]}
    assert all(level["decisions"] > 0 and level["act_microseconds"]["p50"] > 0 for level in levels.values())
    assert levels["full"]["sent_bytes_per_second"] > levels["record"]["sent_bytes_per_second"]


def profile(server: Server, client: str, out: Path) -> dict[str, Any]:
    """Measure a client with the command line, as soon as it has reported."""
    where = ["--server", f"127.0.0.1:{server.port}", "--seconds", "8", "--json", "--out", str(out)]
    command = [sys.executable, "-m", "rl4sys.cli", "profile", client, *where]
    while True:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        if "not reported yet" not in done.stderr:
            assert done.returncode == 0, done.stderr
            found: dict[str, Any] = json.loads(done.stdout)
            return found
