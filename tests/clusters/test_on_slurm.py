"""`--on slurm` for the commands that train several runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.commands import Here, write_config
from experiments.runs import PPO, values

from .fake_slurm import FakeSlurm


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(write_config(tmp_path / "small.yaml", values(PPO, Path("runs"))))


@pytest.mark.slow
def test_seeds_train_as_jobs_and_are_listed(rl4sys: Here, slurm: FakeSlurm, config: str) -> None:
    code, out, err = rl4sys("train", config, "--seed", "1,2", "--on", "slurm", "--cpus", "2")
    assert (code, slurm.numbers()) == (0, [1, 2]), err
    assert "2 at a time as SLURM jobs with 2 CPU each" in err
    assert "--cpus-per-task=2" in slurm.argv(1)
    assert out.count("runs/ppo-CartPole-v1-seed") >= 2
    listed = json.loads(rl4sys("list", "--json").out)
    assert {run["status"] for run in (listed["runs"] if isinstance(listed, dict) else listed)} == {"finished"}


@pytest.mark.slow
def test_a_sweep_trains_as_jobs(rl4sys: Here, slurm: FakeSlurm, config: str) -> None:
    Path("sweep.yaml").write_text(f"base_config: {config}\nsweep: {{algorithm.lr: [1e-3, 1e-4]}}\n")
    code, _, err = rl4sys("sweep", "sweep.yaml", "--on", "slurm", "--jobs", "1")
    assert (code, slurm.numbers()) == (0, [1, 2]), err
    assert list(Path("runs/sweep/.slurm").iterdir()) == []


def test_a_missing_sbatch_is_one_sentence(
    rl4sys: Here, config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = rl4sys("train", config, "--seed", "1,2", "--on", "slurm")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: This needs the command 'sbatch', which is not installed here")
    assert not Path("runs").exists()


def test_half_a_gpu_is_refused_before_anything_starts(rl4sys: Here, slurm: FakeSlurm, config: str) -> None:
    code, _, err = rl4sys("train", config, "--seed", "1,2", "--on", "slurm", "--gpus", "0.5")
    assert (code, slurm.numbers(), "SLURM gives whole GPUs" in err) == (2, [], True)
