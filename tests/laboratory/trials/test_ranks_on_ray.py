"""`rl4sys train --ranks N --on ray`: ranks on a cluster learn what one process learns that computes their parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.programs import Program

from cli.commands import finish, start, wait_until, write_config
from experiments.runs import PPO, values
from laboratory.trials.ray_cluster import kill, small_cluster, trial_processes
from rl4sys.experiments import Result, Run, load_experiment

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
FOUR_LANES = {"environment.num_envs": 4, "training.total_timesteps": 4096}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RL4SYS_TEST", str(tmp_path))
    kind = load_experiment(values(PPO, Path("runs")), FOUR_LANES).model_dump(mode="json")
    return write_config(tmp_path / "small.yaml", kind)


def expected(config: Path, place: Path) -> dict[str, str]:
    """The fingerprint of the same run in one process."""
    whole = load_experiment(config, {"training.ranks": 2, "directory": str(place / "whole")})
    return Run.create(whole).train().fingerprint


def begin(config: Path, *options: str) -> Program:
    """The command, and wait until its run has a checkpoint."""
    place = config.parent
    process = start("train", str(config), "--ranks", "2", "--on", "ray", *options, cwd=place)
    wait_until(lambda: any(place.glob("runs/*/checkpoints/0*64")), process, seconds=200)
    return process


def kill_one(place: Path) -> None:
    # Rank 0 starts first; a process that it forks for a moment comes after the ranks.
    kill(sorted(trial_processes(place))[1])


def fingerprint(place: Path) -> dict[str, str]:
    """That of the only run."""
    (path,) = place.glob("runs/*/result.json")
    result = Result.read(path)
    assert result is not None
    assert result.finished
    return result.fingerprint


def test_a_killed_rank_is_replaced_and_the_run_learns_the_same_bits(tmp_path: Path, config: Path) -> None:
    process = begin(config)
    kill_one(tmp_path)
    code, _, err = finish(process, seconds=240)
    assert code == 0, err
    assert err.count("it continues, attempt 2") == 1
    assert "with 2 ranks of 1 CPU each on Ray on this machine" in err
    assert fingerprint(tmp_path) == expected(config, tmp_path)
    assert not trial_processes(tmp_path)


@pytest.mark.cluster
def test_without_retries_a_dead_rank_ends_all_and_the_run_resumes_here(tmp_path: Path, config: Path) -> None:
    process = begin(config, "--retries", "0")
    kill_one(tmp_path)
    wait_until(lambda: not trial_processes(tmp_path), process, seconds=10)
    code, _, err = finish(process)
    assert code == 1
    assert "killed by SIGKILL" in err.splitlines()[-1]
    (config_file,) = tmp_path.glob("runs/*/config.yaml")
    assert finish(start("resume", str(config_file.parent), cwd=tmp_path), seconds=120).code == 0
    assert fingerprint(tmp_path) == expected(config, tmp_path)


@pytest.mark.cluster
def test_ranks_on_two_nodes_move_through_storage(tmp_path: Path, config: Path) -> None:
    with small_cluster(nodes=3) as cluster:
        place = ("--ranks", "2", "--on", "ray", "--address", cluster.address, "--storage", f"file://{tmp_path}/store")
        process = start("train", str(config), *place, cwd=tmp_path)
        wait_until(lambda: len(list(tmp_path.glob("store/*/files/*"))) > 6, process, seconds=200)
        cluster.kill(0)
        code, _, err = finish(process, seconds=240)
    assert code == 0, err
    assert fingerprint(tmp_path) == expected(config, tmp_path)


def test_more_ranks_than_a_cluster_has_room_for_are_refused(tmp_path: Path, config: Path) -> None:
    with small_cluster(nodes=1) as cluster:
        place = ("--ranks", "2", "--on", "ray", "--address", cluster.address)
        code, _, err = finish(start("train", str(config), *place, cwd=tmp_path))
    assert (code, "A run has 2 ranks with 1 CPU each, but the cluster has room for 1." in err) == (2, True), err
    assert not (tmp_path / "runs").exists()
