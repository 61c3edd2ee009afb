"""Sweeps on a real Ray cluster learn the same bits as here, whatever is killed."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path

import pytest
from tests.programs import Program

from cli.commands import Outcome, finish, start, write_config
from experiments.runs import PPO, values
from laboratory.trials.ray_cluster import kill, small_cluster, trial_processes, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
SWEEP = {"base_config": "base.yaml", "sweep": {"algorithm.lr": [1e-3, 3e-4]}, "seeds": [1]}


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep of two trials that take some seconds, in a directory of its own."""
    monkeypatch.setenv("RL4SYS_TEST", str(tmp_path))
    base = values(PPO, Path("runs"))
    base["training"] = {**base["training"], "total_timesteps": 12_000, "checkpoint_frequency": 1_000}
    write_config(tmp_path / "base.yaml", base)
    (tmp_path / "sweep.yaml").write_text(json.dumps(SWEEP))
    return tmp_path


def run(directory: Path, *options: str) -> Outcome:
    return finish(start("sweep", "sweep.yaml", *options, cwd=directory), seconds=240)


def fingerprints(directory: Path, name: str) -> list[dict[str, str]]:
    results = sorted((directory / "runs" / name).glob("*/*/result.json"))
    assert len(results) == 2, results
    return [json.loads(result.read_text())["fingerprint"] for result in results]


def test_a_sweep_survives_killed_processes_and_nodes(sweep: Path) -> None:
    assert run(sweep, "--name", "here").code == 0
    storage = sweep / "store"
    with small_cluster(nodes=2) as cluster:
        place = ("--on", "ray", "--address", cluster.address, "--storage", f"file://{storage}", "--name", "there")
        driver = start("sweep", "sweep.yaml", *place, cwd=sweep)
        wait_for(lambda: len(list(storage.glob("there/*/files/*"))) > 6)
        kill(trial_processes(sweep)[0])
        cluster.add()
        cluster.kill(0)
        code, _, err = finish(driver, seconds=240)
    assert code == 0, err
    assert err.count("it continues, attempt ") >= 2, err
    assert fingerprints(sweep, "there") == fingerprints(sweep, "here")
    assert not trial_processes(sweep)


@pytest.mark.cluster
def test_a_random_schedule_of_kills_ends_in_the_same_fingerprints(sweep: Path) -> None:
    assert run(sweep, "--name", "here").code == 0
    storage, chance = sweep / "store", random.Random(14)
    with small_cluster(nodes=2) as cluster:
        place = ("--on", "ray", "--address", cluster.address, "--storage", f"file://{storage}", "--retries", "20")
        driver = start("sweep", "sweep.yaml", *place, "--name", "there", cwd=sweep)
        for _ in range(4):
            # What was killed continues and saves before the next kill.
            wait_for(partial(has_progressed, storage, checkpoints(storage), driver))
            if chance.random() < 0.25:
                cluster.add()
                cluster.kill(0)
            elif running := trial_processes(sweep):
                kill(chance.choice(running))
        code, _, err = finish(driver, seconds=400)
    assert code == 0, err
    assert fingerprints(sweep, "there") == fingerprints(sweep, "here")


def has_progressed(storage: Path, before: set[str], driver: Program) -> bool:
    return bool(checkpoints(storage) - before) or driver.poll() is not None


def checkpoints(storage: Path) -> set[str]:
    """The lists of what was stored, by name and time."""
    return {f"{path}:{path.stat().st_mtime_ns}" for path in storage.glob("there/*/attempts/*.json")}


def test_without_an_address_ray_is_started_here(sweep: Path) -> None:
    code, _, err = run(sweep, "training.total_timesteps=256", "--on", "ray", "--cpus", "1", "--name", "there")
    assert (code, "on Ray on this machine (1 node)" in err) == (0, True), err
    assert run(sweep, "training.total_timesteps=256", "--name", "here").code == 0
    assert fingerprints(sweep, "there") == fingerprints(sweep, "here")


def test_what_a_cluster_cannot_do_is_refused_before_anything_starts(sweep: Path) -> None:
    with small_cluster(nodes=1) as cluster:
        place = ("--on", "ray", "--address", cluster.address)
        for options, answer in (
            (("--cpus", "64"), "A run asks for 64 CPU, but no node of the cluster has more than 1."),
            (("--gpus", "1"), "A run asks for 1 GPU, but no node of the cluster has more than 0."),
            (("--storage", f"file://{sweep}/base.yaml/x"), "cannot be written to"),
        ):
            code, _, err = run(sweep, *place, *options)
            assert (code, answer in err) == (2, True), err
    assert not (sweep / "runs").exists()
