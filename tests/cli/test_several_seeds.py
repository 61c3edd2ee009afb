from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from rl4sys.experiments import Result
from rl4sys.laboratory.trials.local_launcher import LocalLauncher

from .commands import finish, start, wait_until

RARELY = "training.checkpoint_frequency=100000"


@pytest.mark.slow
def test_seeds_run_in_parallel_and_are_summarized(tmp_path: Path, config: Path) -> None:
    process = start("train", str(config), "--seed", "1,2", "--jobs", "2", cwd=tmp_path)
    code, out, err = finish(process)
    assert code == 0, err
    assert "ppo-CartPole-v1, seed 1: step 256/256" in err
    assert "ppo-CartPole-v1, seed 2: step 256/256" in err
    assert f"2 in runs, {LocalLauncher(2).describe()}" in err
    assert "2/2 ppo-CartPole-v1, seed " in err
    assert len([line for line in out.splitlines() if line.startswith("runs/ppo-CartPole-v1-seed")]) == 2
    assert (tmp_path / "runs" / "ppo-CartPole-v1.png").is_file()
    assert not list(tmp_path.glob("runs/*.starting"))


@pytest.mark.slow
def test_a_seed_that_dies_does_not_stop_the_others(tmp_path: Path, config: Path) -> None:
    arguments = ("train", str(config), "--seed", "1,2", "--jobs", "2", "training.total_timesteps=3000", RARELY)
    process = start(*arguments, cwd=tmp_path)
    # Do not wait for both: the first might be finished by then.
    wait_until(lambda: bool(list(tmp_path.glob("runs/*-seed1-*/checkpoints/latest"))), process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    code, out, err = finish(process)
    assert code == 1
    assert "error: 1 of 2 runs failed:\n  ppo-CartPole-v1, seed 1: it was killed by SIGKILL" in err
    assert "once the cause is fixed: rl4sys resume runs/ppo-CartPole-v1-seed1-" in err
    assert out.count("runs/ppo-CartPole-v1-seed2-") == 1


@pytest.mark.slow
def test_seeds_stop_when_the_command_is_killed(tmp_path: Path, config: Path) -> None:
    arguments = ("train", str(config), "--seed", "1,2", "--jobs", "2", "training.total_timesteps=1e7", RARELY)
    process = start(*arguments, cwd=tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("runs/*/checkpoints/latest"))) == 2, process)
    process.kill()
    finish(process)
    waiting = subprocess.Popen(["tail", "-f", "/dev/null"])
    try:
        wait_until(lambda: len(list(tmp_path.glob("runs/*/result.json"))) == 2, waiting)
    finally:
        waiting.kill()
        waiting.wait()
    assert all(Result.read(path) for path in tmp_path.glob("runs/*/result.json"))


@pytest.mark.slow
def test_ctrl_c_stops_every_seed_with_a_checkpoint(tmp_path: Path, config: Path) -> None:
    arguments = ("train", str(config), "--seed", "1,2,3", "--jobs", "2", "training.total_timesteps=1e7", RARELY)
    process = start(*arguments, cwd=tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("runs/*/checkpoints/latest"))) == 2, process)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130, err
    assert err.count("resume with: rl4sys resume runs/") == 2
    assert "not started: ppo-CartPole-v1, seed 3" in err
    for run in (tmp_path / "runs").glob("[!.]*"):
        assert (run / "result.json").is_file()
