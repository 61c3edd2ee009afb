"""Clients and servers of two revisions, both real, in both directions.

git worktree add ../other REVISION
RL4SYS_OTHER_SOURCE=../other/src pytest -m slow tests/client/test_other_revision.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rl4sys

HERE = str(Path(rl4sys.__file__).parents[1])
OTHER = os.environ.get("RL4SYS_OTHER_SOURCE")


def found(server: str, client: str, data: Path) -> dict[str, dict[str, Any]]:
    """What a client of one source tree reports of its agents, with a server of another."""
    serve = [sys.executable, "-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    environment = os.environ | {"PYTHONPATH": server}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().split()[-1]
            system = [sys.executable, str(Path(__file__).with_name("other_revision.py")), f"127.0.0.1:{port}"]
            environment = os.environ | {"PYTHONPATH": client}
            printed = subprocess.run(system, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        finally:
            process.terminate()
    return {agent.pop("agent"): agent for agent in map(json.loads, printed.splitlines())}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(OTHER is None, reason="needs the sources of another revision: set RL4SYS_OTHER_SOURCE")
@pytest.mark.parametrize("is_client", [True, False], ids=["its client", "its server"])
def test_clients_and_servers_of_two_revisions_work_together(is_client: bool, tmp_path: Path) -> None:
    other = str(Path(str(OTHER)).resolve())
    agents = found(*((HERE, other) if is_client else (other, HERE)), tmp_path / "data")
    assert set(agents) == {"long", "short", "shared", "exploits", "candidates"}
    for name, agent in agents.items():
        assert agent["version"] >= 2, name
        assert (agent["bad_inputs"], agent["stopped"], agent["drops"]) == (0, None, {}), name
        assert (agent["acknowledged"] > 0) == (name != "exploits"), name
    assert agents["candidates"]["incumbent_decisions"] >= 200
