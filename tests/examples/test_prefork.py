from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cpp.programs import Server

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_each_worker_of_a_pre_fork_server_is_a_client_of_the_same_learner(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        done = subprocess.run(
            [sys.executable, "-m", "tests.examples.forked_workers"],
            cwd=ROOT,
            env=os.environ | {"RL4SYS_SERVER": f"127.0.0.1:{server.port}"},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        entries = server.entries()
    assert {entry.client for entry in entries} == {"web-0", "web-1"}
    assert len(entries) == 60
