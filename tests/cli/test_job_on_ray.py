"""`--address http://… --detach`: a command as a job of a real Ray cluster, and its run, pulled from storage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.runs import PPO, values
from rl4sys.experiments import Result, Run, find_run, load_experiment

from .commands import finish, start, write_config

BIN = Path(sys.executable).parent


@pytest.fixture
def dashboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of the dashboard of a Ray cluster on loopback, which has the commands of this environment."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    pytest.importorskip("aiohttp", reason="the dashboard needs ray[default]")
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    # The path of a Unix socket must be short, which that of a test's own directory is not.
    directory = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    head = {"num_cpus": 2, "include_dashboard": True, "dashboard_host": "127.0.0.1", "temp_dir": directory}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    try:
        yield f"http://{cluster.webui_url}"
    finally:
        cluster.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


class StartingCluster:
    """Takes a job at the third request, or refuses it for another reason."""

    def __init__(self, message: str) -> None:
        self.message, self.requests = message, 0

    def submit_job(self, **job: object) -> str:
        self.requests += 1
        if self.requests < 3:
            raise RuntimeError(self.message)
        return "job-1"


def test_a_cluster_that_has_just_started_is_asked_again() -> None:
    module = pytest.importorskip("rl4sys.cli.job_on_ray")
    pauses: list[float] = []
    cluster = StartingCluster("status code 500: No available agent to submit job, please try again later.")
    assert module._submitted(cluster, "rl4sys list", pauses.append) == "job-1"
    assert (cluster.requests, len(pauses)) == (3, 2)
    refusing = StartingCluster("status code 403")
    with pytest.raises(RuntimeError, match="403"):
        module._submitted(refusing, "rl4sys list", pauses.append)
    assert refusing.requests == 1


@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_a_detached_job_is_followed_and_its_run_is_pulled(tmp_path: Path, dashboard: str) -> None:
    config = load_experiment(values(PPO, Path("runs"))).model_dump(mode="json")
    expected = Run.create(load_experiment(config, {"directory": str(tmp_path / "here"), "seed": 1})).train()
    work = tmp_path / "work"
    work.mkdir()
    write_config(work / "small.yaml", config)
    storage = f"file://{tmp_path}/storage"
    where = ("--on", "ray", "--address", dashboard, "--storage", storage, "--detach")
    submitted = finish(start("train", "small.yaml", "--seed", "1", *where, cwd=work), seconds=120)
    assert submitted.code == 0, submitted.err
    follow = next(line for line in submitted.out.splitlines() if line.startswith("follow it with: "))
    followed = subprocess.run(
        follow.removeprefix("follow it with: ").split(), capture_output=True, text=True, timeout=300, check=False
    )
    assert followed.returncode == 0, followed.stdout + followed.stderr
    assert not (work / "runs").exists()
    pulled = finish(start("pull", storage, "--json", cwd=work), seconds=120)
    assert pulled.code == 0, pulled.err
    (run,) = (find_run(path) for path in (work / "runs").glob("[!.]*"))
    result = Result.read(run.result)
    assert result is not None
    assert (result.finished, result.fingerprint) == (True, expected.fingerprint)
    assert json.loads(run.manifest.read_text())["inexact"] == []
