"""`rl4sys profile`: what the client costs, measured in a real program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_serve import port, run  # noqa: F401

from .commands import Here

SYSTEM = """
import sys, numpy, rl4sys
settings = {"client_id": "system", "server": sys.argv[1], "algorithm": {"name": "ppo"}, "observation": 4, "action": 2}
agent = rl4sys.connect(settings | {"timeout": 30}, fallback=lambda observation: 0)
row = numpy.zeros(4, numpy.float32)
while True:
    with agent.episode() as episode:
        for _ in range(100):
            episode.act(row)
            episode.reward(1.0)
        episode.end(row)
"""


@pytest.mark.slow
def test_a_running_system_is_measured_at_every_level(port: int, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "system.py").write_text(SYSTEM)
    command = ["-m", "rl4sys.cli", "profile", "--seconds", "10", "--out", str(tmp_path / "out"), "--json", "--"]
    answer = run(*command, sys.executable, str(tmp_path / "system.py"), f"127.0.0.1:{port}")
    assert answer.returncode == 0, answer.stderr
    levels = {level["level"]: level for level in json.loads(answer.stdout)["levels"]}
    assert all(level["decisions"] > 0 for level in levels.values())
    assert levels["full"]["sent_bytes_per_second"] > levels["record"]["sent_bytes_per_second"]
    assert (tmp_path / "out" / "profile.png").stat().st_size > 10_000


def test_a_program_that_never_connects_is_one_clear_error(rl4sys: Here) -> None:
    code, _, err = rl4sys("profile", "--", sys.executable, "-c", "pass")
    assert code == 2
    assert "took no decision" in err


def test_a_program_that_does_not_exist_is_one_clear_error(rl4sys: Here) -> None:
    code, _, err = rl4sys("profile", "--", "./no-such-program")
    assert code == 2
    assert "'./no-such-program' cannot be started" in err


@pytest.mark.slow
def test_a_connected_client_is_measured_through_the_server(port: int, rl4sys: Here, tmp_path: Path) -> None:  # noqa: F811
    address = f"127.0.0.1:{port}"
    (tmp_path / "system.py").write_text(SYSTEM)
    command = ["profile", "system", "--server", address, "--seconds", "10", "--json", "--out", str(tmp_path / "out")]
    system = subprocess.Popen([sys.executable, str(tmp_path / "system.py"), address])
    try:
        answer = rl4sys(*command)
        while "no client" in answer.err or "not reported yet" in answer.err:
            assert system.poll() is None
            answer = rl4sys(*command)
        assert system.poll() is None
    finally:
        system.kill()
        system.wait()
    assert answer.code == 0, answer.err
    values = json.loads(answer.out)
    assert (values["clients"], values["floor_microseconds"] > 0) == (["system"], True)
    levels = {level["level"]: level for level in values["levels"]}
    assert all(level["decisions"] > 0 and level["act_microseconds"]["p50"] > 0 for level in levels.values())
    assert levels["full"]["sent_bytes_per_second"] > levels["record"]["sent_bytes_per_second"]
    assert (tmp_path / "out" / "profile.png").stat().st_size > 10_000


def test_a_client_of_an_unreachable_server_is_one_clear_error(rl4sys: Here) -> None:
    code, _, err = rl4sys("profile", "node-1", "--server", "127.0.0.1:1")
    assert code == 2
    assert "Is it running?" in err
