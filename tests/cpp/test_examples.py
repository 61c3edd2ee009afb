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
    quick = ["--requests", "20000", "--block", "1000", "--capacity", "200", "--rate", "10000"]
    with Server(tmp_path) as server:
        said = run("cache", server, "--config", config, *quick)
        assert int(only_client(server)["stored_steps"]) > 5000
    assert len(re.findall(r"^ +\d+( +[\d.]+%){7}$", said, re.MULTILINE)) == 20
    (version,) = re.findall(r"^Version (\d+)\. act: median [\d.]+ us", said, re.MULTILINE)
    assert int(version) > 0


def without_server(*arguments: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the cache example with caches that do not learn."""
    command = [EXAMPLES / "cache", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)


def test_a_trace_on_the_standard_input_is_served_and_drawn(tmp_path: Path) -> None:
    lines = "".join(f"{page} 1 0 {number}\n" for number, page in enumerate([7, 8, 7, 9, 8, 7]))
    rivals = "--caches", "LRU,Belady", "--capacity", "2", "--block", "3", "--json"
    done = without_server("--trace", "-", *rivals, given=lines)
    rates = json.loads(done.stdout)["hit_rates"]
    assert rates["LRU"]["blocks"] == pytest.approx([100 / 3, 0])
    assert rates["Belady"]["all"] == pytest.approx(200 / 6)
    (tmp_path / "rates.json").write_text(done.stdout)
    plot = [sys.executable, ROOT / "cpp/examples/plot_cache.py", tmp_path / "rates.json", "--out", tmp_path / "a.png"]
    subprocess.run(plot, capture_output=True, timeout=60, check=True)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_a_malformed_trace_is_refused_with_its_place(tmp_path: Path) -> None:
    trace = tmp_path / "broken.lis"
    trace.write_text("1 1 0 0\n2 one 0 1\n")
    done = without_server("--trace", trace, "--caches", "LRU")
    assert done.returncode == 1
    assert f"{trace}:2:3: expected the number of pages" in done.stderr


def test_help_shows_commands_and_every_option() -> None:
    done = without_server("--help")
    assert done.returncode == 0
    assert "cache --trace OLTP.lis.zst" in done.stdout
    assert all(option in done.stdout for option in ("--caches", "--rate", "--capacity", "--json"))


def test_an_example_reports_a_wrong_option(tmp_path: Path) -> None:
    done = without_server("--sever", "x")
    assert done.returncode == 1
    assert "There is no option '--sever'." in done.stderr
    assert "[--server 127.0.0.1:50051]" in done.stderr


def test_workers_of_a_prefork_server_each_learn_under_their_own_name(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        said = run("prefork", server, "--workers", "3", "--requests", "200")
        entries = server.entries()
    assert sorted(said.splitlines())[0].startswith("worker 0: 200 requests, mean wait ")
    assert said.count("all experience is on the server") == 3
    steps = dict.fromkeys((f"prefork-{number}" for number in range(3)), 0)
    for entry in entries:
        steps[entry.client] += entry.steps
    assert list(steps.values()) == [200, 200, 200]


def test_workers_of_a_prefork_server_do_not_end_before_the_server_answers(tmp_path: Path) -> None:
    settings = json.loads((ROOT / "cpp" / "examples" / "prefork.json").read_text())
    assert settings["timeout"] >= 60
    config = tmp_path / "prefork.json"
    config.write_text(json.dumps(settings | {"timeout": 0.5}))
    # Nothing listens on port 1.
    command = [EXAMPLES / "prefork", "--config", config, "--server", "127.0.0.1:1", "--workers", "2", "--requests", "9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("No answer from the server 127.0.0.1:1 within 0.5 s") == 2
