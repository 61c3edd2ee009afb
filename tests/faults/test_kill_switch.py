"""The kill switch, as an operator uses it: it survives kill -9 on both sides, and the policy cache."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.processes import ROOT, Server

LEARNER = "shared~switch"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


@contextmanager
def client(server: Server, cache: Path, **settings: object) -> Iterator[Iterator[str]]:
    """The lines of a client, which is killed at the end."""
    values = {"client_id": "switched", "policy_id": "switch", "server": server.address, "cache": str(cache)}
    values |= {"algorithm": "DQN", "observation": 3, "action": 2, "timeout": 60, **settings}
    command = [sys.executable, "-m", "tests.faults.obeying_client", json.dumps(values)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield (line.strip() for line in process.stdout)
        finally:
            process.kill()


def order(server: Server, mode: str) -> None:
    reason = ["--reason", "test"] if mode != "follow" else []
    command = [sys.executable, "-m", "rl4sys.cli", "control", LEARNER, mode, *reason, "--server", server.address]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_an_order_survives_kills_of_both_sides_until_the_operator_ends_it(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with client(server, cache) as off:
        assert next(off) == ""
        order(server, "off")
        assert next(off) == "control"
        server.kill()
    with client(server, cache, timeout=1) as off:
        assert next(off) == "control"
        server.start()
        with client(server, tmp_path / "other", client_id="newcomer") as newcomer:
            assert next(newcomer) == "control"
            order(server, "follow")
            assert (next(off), next(newcomer)) == ("", "")


@pytest.mark.slow
def test_the_kill_file_and_the_lease_need_no_server(server: Server, tmp_path: Path) -> None:
    switch = tmp_path / "off"
    with client(server, tmp_path / "cache", kill_file=str(switch), lease=3) as off:
        assert next(off) == ""
        switch.touch()
        assert next(off) == "kill_file"
        switch.unlink()
        assert next(off) == ""
        server.kill()
        assert next(off) == "lease"
        server.start()
        assert next(off) == ""
