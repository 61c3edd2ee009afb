"""`rl4sys serve` and `rl4sys status` in two processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

LANDER = Path(__file__).parents[2] / "examples" / "lunar_lander"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        try:
            word, number = server.stdout.readline().split()
            assert word == "serving"
            yield int(number)
        finally:
            server.terminate()
            assert server.wait(timeout=30) == 0


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_server_without_learners_says_so_in_json(port: int) -> None:
    answer = run("-m", "rl4sys.cli", "status", f"127.0.0.1:{port}", "--json")
    facts = json.loads(answer.stdout)
    assert facts["server"]["state"] == "SERVER_STATE_SERVING"
    assert facts["learners"] == []


@pytest.mark.slow
def test_the_lander_of_the_examples_flies_and_is_seen_in_the_status(port: int, tmp_path: Path) -> None:
    settings = json.loads((LANDER / "ppo.json").read_text()) | {"train_server_address": f"127.0.0.1:{port}"}
    (tmp_path / "ppo.json").write_text(json.dumps(settings))
    flown = run(str(LANDER / "lander.py"), str(tmp_path / "ppo.json"), "--episodes", "25")
    assert "episode    25" in flown.stdout, flown.stderr
    facts = json.loads(run("-m", "rl4sys.cli", "status", f"127.0.0.1:{port}", "--json").stdout)
    (learner,) = facts["learners"]
    assert learner["learner"] == "lunar-lander-ppo"
    assert int(learner["stored_steps"]) > 0


def test_a_missing_server_is_a_one_line_error() -> None:
    answer = run("-m", "rl4sys.cli", "status", "127.0.0.1:1")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith("error: 127.0.0.1:1: ")
    assert "rl4sys serve" in answer.stderr
