"""No process of a whole session pickles or unpickles anything: watched from inside each of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
AUDITED = str(HERE / "audited")


def audited(directory: Path) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (AUDITED, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "RL4SYS_AUDIT": str(directory)}


@contextmanager
def serving(address: str, data: Path, environment: dict[str, str]) -> Iterator[None]:
    command = [sys.executable, "-m", "rl4sys.server", "--listen", address, "--data", str(data)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                assert server.wait(30.0) == 0
            finally:
                server.kill()


def learn(address: str, directory: Path, version: int, environment: dict[str, str]) -> None:
    command = [sys.executable, str(HERE / "learning_client.py"), address, str(directory), str(version)]
    subprocess.run(command, env=environment, check=True, timeout=120, capture_output=True, text=True)


@pytest.mark.slow
def test_no_process_of_a_session_pickles_anything(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    environment, address = audited(events), f"unix:{tmp_path}/socket"
    for version in (2, 4):
        with serving(address, tmp_path / "data", environment):
            learn(address, tmp_path, version, environment)
    assert list((tmp_path / "data" / "learners" / "audited" / "checkpoints").glob("0*"))
    lines = [line for file in events.glob("*.events") for line in file.read_text().splitlines()]
    ran = [line for line in lines if line.startswith("runs ")]
    # Workers are forked by the fork server, and watched with it.
    for process in ("rl4sys.server --listen", "rl4sys.server.workers.fork_server_process", "learning_client.py"):
        assert sum(process in line for line in ran) >= 2, (process, ran)
    assert [line for line in lines if not line.startswith("runs ")] == []


def test_the_audit_detects_pickling(tmp_path: Path) -> None:
    script = "import pickle, marshal, fractions; pickle.loads(pickle.dumps(fractions.Fraction(1))); marshal.loads(b'N')"
    subprocess.run([sys.executable, "-c", script], env=audited(tmp_path), check=True)
    (file,) = tmp_path.glob("*.events")
    seen = {line.split()[0] for line in file.read_text().splitlines()}
    assert {"pickle.dumps", "pickle.loads", "pickle.find_class", "marshal.loads"} <= seen
