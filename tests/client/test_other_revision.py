"""Clients and servers of two revisions, both real, in both directions.

The other one is the latest release, or else an earlier revision in the history of this repository. Another one:

git worktree add ../other REVISION
RL4SYS_OTHER_SOURCE=../other/src pytest -m slow tests/client/test_other_revision.py
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

import rl4sys

HERE = str(Path(rl4sys.__file__).parents[1])
ROOT = Path(__file__).parents[2]
EARLIER = 40
"""How many revisions the other one is behind, where there is no release yet."""

PROGRAM = str(Path(__file__).with_name("other_revision.py"))
SYSTEM = """
import runpy, sys
# The native runtime that is installed belongs to this revision alone.
sys.modules["rl4sys_native"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def git(*arguments: str) -> bytes | None:
    """What git prints in this repository; None if it fails."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sources of another revision."""
    if (given := os.environ.get("RL4SYS_OTHER_SOURCE")) is not None:
        return str(Path(given).resolve())
    release = git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD~1")
    revision = "HEAD~" + str(EARLIER) if release is None else release.decode().strip()
    archive = git("archive", revision, "src")
    if archive is None:
        pytest.skip(f"the history has no {revision}, as in a shallow clone: set RL4SYS_OTHER_SOURCE")
    place = tmp_path_factory.mktemp("other")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(place, filter="data")
    return str(place / "src")


def found(server: str, client: str, data: Path) -> dict[str, dict[str, Any]]:
    """What a client of one source tree reports of its agents, with a server of another."""
    serve = [sys.executable, "-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(data)]
    environment = os.environ | {"PYTHONPATH": server}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().split()[-1]
            system = [sys.executable, "-c", SYSTEM, PROGRAM, f"127.0.0.1:{port}"]
            environment = os.environ | {"PYTHONPATH": client}
            printed = subprocess.run(system, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        finally:
            process.terminate()
    return {agent.pop("agent"): agent for agent in map(json.loads, printed.splitlines())}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_client", [True, False], ids=["its client", "its server"])
def test_clients_and_servers_of_two_revisions_work_together(is_client: bool, other: str, tmp_path: Path) -> None:
    agents = found(*((HERE, other) if is_client else (other, HERE)), tmp_path / "data")
    assert set(agents) == {"long", "short", "shared", "exploits", "candidates"}
    for name, agent in agents.items():
        assert agent["version"] >= 2, name
        assert (agent["bad_inputs"], agent["stopped"], agent["drops"]) == (0, None, {}), name
        assert (agent["acknowledged"] > 0) == (name != "exploits"), name
    assert agents["candidates"]["incumbent_decisions"] >= 200
