"""kill -9 at any moment, resume, and the run ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.runs import DQN, OFF_POLICY, PPO, values
from rl4sys.experiments import Result, Run, find_run, load_experiment

from .commands import finish, start, wait_until, write_config

CASES: dict[str, tuple[Mapping[str, Any], dict[str, Any], str]] = {
    "ppo": (PPO, {"environment.normalize_obs": True, "environment.normalize_reward": True}, "both"),
    "ppo pipelined": (PPO, {"environment.name": "LunarLander-v3", "training.pipelined": True}, "at some time"),
    "ppo on a box": (PPO, {"environment.name": "Pendulum-v1", "environment.normalize_obs": True}, "while saving"),
    "dqn": (DQN, {"algorithm.n_step": 3}, "while saving"),
    "sac with goals on the disk": (
        OFF_POLICY,
        {
            "algorithm.name": "sac",
            "environment.name": "rl4sys/PointReach-v0",
            "buffer": {"type": "hindsight", "size": 150, "storage": "mmap"},
        },
        "both",
    ),
}
DYING = str(Path(__file__).with_name("killed.py"))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_killed_run_ends_as_the_uninterrupted_one(tmp_path: Path, case: str) -> None:
    kind, changes, moment = CASES[case]
    config = load_experiment(values(kind, tmp_path / "runs"), {**changes, "training.total_timesteps": 512})
    expected = Run.create(load_experiment(config.model_dump(), {"directory": str(tmp_path / "whole")})).train()
    write_config(tmp_path / "config.yaml", config.model_dump(mode="json"))
    chance = random.Random(case)
    if moment != "at some time":
        die_while_saving(chance.randrange(6, 60), tmp_path)
    if moment != "while saving":
        die_at_some_time(chance.randrange(1, 9), tmp_path)
    run = find_run(tmp_path / "runs" / config.name)
    code, _, err = finish(start("resume", str(run.path), cwd=tmp_path))
    assert (code, "not exact" in err) == (0, False)
    ended = Result.read(run.result)
    assert ended is not None
    assert ended.fingerprint == expected.fingerprint


def die_while_saving(count: int, cwd: Path) -> None:
    """Start the run and kill it at the n-th time that it waits for the disk."""
    killed = start(str(count), "train", "config.yaml", cwd=cwd, program=DYING)
    assert finish(killed).code == -signal.SIGKILL


def die_at_some_time(records: int, cwd: Path) -> None:
    """Start or resume the run, and kill it after that many more records."""

    def written() -> int:
        return sum(len(path.read_bytes().splitlines()) for path in cwd.glob("runs/*/metrics.jsonl"))

    runs = [str(path.parent) for path in cwd.glob("runs/*/manifest.json")]
    enough = written() + records
    process = start(*(["resume", *runs] if runs else ["train", "config.yaml"]), cwd=cwd)
    wait_until(lambda: written() >= enough, process)
    process.kill()
    assert finish(process).code in (-signal.SIGKILL, 0)


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_and_prints_the_resume_command(tmp_path: Path, config: Path) -> None:
    process = start("train", str(config), "training.total_timesteps=1e7", cwd=tmp_path)
    wait_until(lambda: any(tmp_path.glob("runs/*/checkpoints/0*64")), process)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    (run,) = (tmp_path / "runs").glob("[!.]*")
    assert f"resume with: rl4sys resume runs/{run.name}" in err
    result = Result.read(run / "result.json")
    assert result is not None
    assert (run / "checkpoints" / f"{result.steps:012d}").is_dir()
