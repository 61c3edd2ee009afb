"""Runs in S3, against a server on loopback that behaves like it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.runs import DQN, small
from rl4sys.experiments import Run
from rl4sys.laboratory.run_mirror import RunMirror
from rl4sys.storage import StorageUnavailable, find_stored_runs, open_storage

pytestmark = pytest.mark.cluster


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The options of a URL for a server of our own."""
    environment = os.environ.get("RL4SYS_CLUSTER_ENVIRONMENT")
    if environment is None:
        pytest.skip("make test-cluster makes the environment with moto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with subprocess.Popen(
        [f"{environment}/bin/moto_server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.1)
        yield f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
        server.terminate()


def test_a_run_that_moves_through_s3_learns_the_same_bits(endpoint: str, tmp_path: Path) -> None:
    storage = open_storage(f"s3://lab/runs?{endpoint}&allow_bucket_creation=true")
    storage.system.create_dir("lab")
    storage.require_writable()
    url = f"s3://lab/runs/sweep/trial?{endpoint}"
    whole = Run.create(small(DQN, tmp_path / "whole")).train()
    for machine, steps in enumerate((100, 256)):
        mirror = RunMirror(url)
        found = mirror.fetch(tmp_path / f"machine{machine}")
        run = Run.resume(found) if found else Run.create(small(DQN, tmp_path / "machine0"))
        mirror.attach(run)
        result = run.train(stop=lambda run=run, steps=steps: run.steps >= steps)
        mirror.conclude(run.directory.path)
    assert (machine, result.fingerprint, run.inexact) == (1, whole.fingerprint, ())
    (stored,) = find_stored_runs(storage)
    contents = stored.contents()
    assert contents is not None
    assert (contents.attempt, contents.run) == (2, run.directory.path.name)
    assert len(stored.storage.names("files")) == len(contents.hashes)


def test_a_bucket_that_is_missing_is_refused(endpoint: str) -> None:
    with pytest.raises(StorageUnavailable, match="cannot be written to"):
        open_storage(f"s3://nowhere/runs?{endpoint}").require_writable()
