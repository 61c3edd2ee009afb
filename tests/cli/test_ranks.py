"""`rl4sys train --ranks`: starts its ranks, saves on a signal, and ends with one line when a rank dies."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from tests.programs import Program

from experiments.runs import PPO, values
from rl4sys.experiments import Result, Run, find_run, load_experiment

from .commands import Here, finish, start, wait_until, write_config

FOUR_LANES = {"environment.num_envs": 4}
TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config file of a short run with four lanes."""
    kind = load_experiment(values(PPO, Path("runs")), FOUR_LANES).model_dump(mode="json")
    return write_config(tmp_path / "small.yaml", kind)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--ranks", "3"), "training.ranks: 4 environments cannot be shared evenly by 3 ranks; choose 1 or 2 or 4"),
        (("--ranks", "2", "compile=true"), "set compile=false"),
        (("--ranks", "2", "--seed", "1,2"), "give one seed, or --on ray"),
        (("--ranks", "2", "device=cuda"), "torch finds no CUDA GPU here"),
        (("--ranks", "4", "training.pipelined=true", "training.collectors=2"), "1 environments cannot be shared"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(
    rl4sys: Here, config: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = rl4sys("train", str(config), *arguments)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert message in outcome.err
    assert not Path("runs").exists()


def test_torchrun_with_another_number_of_ranks_is_refused(
    rl4sys: Here, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (TORCHRUN | {"MASTER_PORT": "29500"}).items():
        monkeypatch.setenv(name, value)
    outcome = rl4sys("train", str(config), "--ranks", "4")
    assert outcome.code == 2
    assert "training.ranks is 4, and 2 ranks were started (WORLD_SIZE)" in outcome.err


def test_a_taken_port_is_refused(rl4sys: Here, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, value in (TORCHRUN | {"MASTER_PORT": str(taken.getsockname()[1])}).items():
            monkeypatch.setenv(name, value)
        outcome = rl4sys("train", str(config))
    assert outcome.code == 2
    assert "the port is taken" in outcome.err
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_stopped_run_on_ranks_resumes_exactly(tmp_path: Path, config: Path) -> None:
    whole = load_experiment(config, {"training.ranks": 2, "training.total_timesteps": 4096})
    expected = Run.create(load_experiment(whole.model_dump(), {"directory": str(tmp_path / "whole")})).train()
    process = start("train", str(config), "--ranks", "2", "training.total_timesteps=4096", cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*64")), process)
    process.send_signal(signal.SIGTERM)
    stopped = finish(process)
    run = find_run(next((tmp_path / "runs").glob("[!.]*")))
    assert (stopped.code, f"resume with: rl4sys resume runs/{run.path.name}" in stopped.err) == (130, True)
    assert finish(start("resume", str(run.path), cwd=tmp_path)).code == 0
    ended = Result.read(run.result)
    assert ended is not None
    assert ended.fingerprint == expected.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_command_with_one_line(tmp_path: Path, config: Path, victim: int) -> None:
    process = start("train", str(config), "--ranks", "2", "training.total_timesteps=1e8", cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*64")), process)
    ranks = children(process)
    os.kill(ranks[victim], signal.SIGKILL)
    outcome = finish(process, seconds=30)
    (run,) = tmp_path.glob("runs/[!.]*")
    how = f"Rank {victim} was killed by SIGKILL. All ranks have ended; resume with: rl4sys resume runs/{run.name}"
    assert (outcome.code, outcome.err.splitlines()[-1]) == (2, f"error: {how}")
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


@pytest.mark.slow
def test_a_killed_rank_of_three_ends_all_even_one_that_hangs(tmp_path: Path, config: Path) -> None:
    length = ("training.total_timesteps=1e8", "environment.num_envs=3")
    process = start("train", str(config), "--ranks", "3", *length, cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*[1-9]*")), process)
    ranks = children(process)
    os.kill(ranks[2], signal.SIGSTOP)
    os.kill(ranks[1], signal.SIGKILL)
    outcome = finish(process)
    assert (outcome.code, "error: Rank 1 was killed by SIGKILL. All ranks have ended" in outcome.err) == (2, True)
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


@pytest.mark.slow
def test_a_second_signal_ends_ranks_that_hang(tmp_path: Path, config: Path) -> None:
    process = start("train", str(config), "--ranks", "2", "training.total_timesteps=1e8", cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*64")), process)
    ranks = children(process)
    os.kill(ranks[1], signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    outcome = finish(process, seconds=30)
    assert outcome.code == 130
    assert "resume with: rl4sys resume runs/" in outcome.err
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)


def children(process: Program) -> list[int]:
    """The processes that a command has started, in the order of their start."""
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
