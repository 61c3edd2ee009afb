"""The examples of the C++ client, run briefly against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cpp.programs import ROOT, Server

EXAMPLES = Path(os.environ.get("RL4SYS_CPP_BUILD", ROOT / "cpp" / "build" / "release")) / "examples"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (EXAMPLES / "cache").is_file() or not (EXAMPLES / "lunar_lander").is_file(),
        reason="the examples of the C++ client are not built: make cpp",
    ),
]


def quick_config(name: str, path: Path) -> Path:
    """The settings of the example, with earlier updates."""
    settings = json.loads((ROOT / "cpp" / "examples" / name).read_text())
    settings["buffer"]["size"] = 512
    settings["algorithm"]["epochs"] = 1
    path.write_text(json.dumps(settings))
    return path


def run(example: str, server: Server, *arguments: str | Path) -> str:
    """The output of an example; fails with its error output."""
    command = [str(EXAMPLES / example), "--server", f"127.0.0.1:{server.port}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return done.stdout


def only_client(server: Server) -> dict[str, Any]:
    """The server's status of its only client."""
    command = [sys.executable, "-m", "rl4sys.cli", "status", f"127.0.0.1:{server.port}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    (client,) = json.loads(done.stdout)["clients"]
    assert isinstance(client, dict)
    return client


def last_version(said: str) -> int:
    """The version in use at the end."""
    (version,) = re.findall(r"safe on the server; version (\d+)\.$", said, re.MULTILINE)
    return int(version)


def test_the_lander_sends_its_episodes_and_gets_new_versions(tmp_path: Path) -> None:
    config = quick_config("lunar_lander.json", tmp_path / "lander.json")
    with Server(tmp_path) as server:
        said = run("lunar_lander", server, "--config", config, "--python", sys.executable, "--episodes", "50")
        assert int(only_client(server)["stored_steps"]) > 50 * 50
    assert len(re.findall(r"^episode +\d+ .* mean return +-?[\d.]+ ", said, re.MULTILINE)) == 2
    assert last_version(said) > 0


def test_the_cache_sends_its_evictions_and_gets_new_versions(tmp_path: Path) -> None:
    config = quick_config("cache.json", tmp_path / "cache.json")
    with Server(tmp_path) as server:
        said = run("cache", server, "--config", config, "--steps", "20000", "--rate", "10000")
        assert int(only_client(server)["stored_steps"]) > 5000
    assert len(re.findall(r"^ +\d+( +[\d.]+%){4} +\d+$", said, re.MULTILINE)) == 20
    assert last_version(said) > 0


def test_an_example_reports_a_wrong_option(tmp_path: Path) -> None:
    done = subprocess.run([EXAMPLES / "cache", "--sever", "x"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "[--server 127.0.0.1:50051]" in done.stderr
