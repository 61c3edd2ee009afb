"""A run on ranks resumes exactly, moves between ranks and one process, and ends when a rank dies."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from experiments.monitoring.spiky import NAME as SPIKY
from experiments.runs import DQN, PPO, small
from rl4sys.experiments import Run, RunDirectory, load_experiment
from rl4sys.state import StateMismatch

from .groups import fingerprint_of, resume_on_ranks, start_ranks, train_on_ranks

TWO = {"environment__num_envs": 4, "training__ranks": 2}


@pytest.mark.parametrize("kind", [PPO, DQN], ids=["ppo", "dqn"])
def test_a_resumed_run_on_ranks_equals_the_uninterrupted_one(tmp_path: Path, kind: object) -> None:
    config = small(kind, tmp_path / "alone", **TWO)
    expected = Run.create(config).train().fingerprint
    run = train_on_ranks(config, tmp_path / "ranks", stop_step=100)
    resume_on_ranks(run, 2)
    assert fingerprint_of(run) == expected
    assert run.read_manifest()["inexact"] == []


def test_one_process_resumes_what_ranks_began(tmp_path: Path) -> None:
    config = small(DQN, tmp_path / "alone", **TWO)
    expected = Run.create(config).train().fingerprint
    run = train_on_ranks(config, tmp_path / "ranks", stop_step=100)
    resumed = Run.resume(run)
    assert resumed.train().fingerprint == expected
    assert resumed.inexact == ()


def test_another_number_of_ranks_is_refused_when_resuming(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, **TWO))
    run.train(stop=lambda: run.steps >= 100)
    config = run.directory.config
    config.write_text(config.read_text().replace("ranks: 2", "ranks: 4"))
    with pytest.raises(StateMismatch, match="saved with 2 rank"):
        Run.resume(run.directory)


def test_the_manifest_says_how_ranks_are_connected(tmp_path: Path) -> None:
    run = train_on_ranks(small(PPO, tmp_path, **TWO), tmp_path / "ranks", stop_step=64)
    ranks = json.loads(run.manifest.read_text())["ranks"]
    assert (ranks["count"], ranks["backend"], len(ranks["hosts"])) == (2, "gloo", 2)


@pytest.mark.parametrize(("ranks", "victim"), [(2, 0), (2, 1), (3, 2)])
def test_a_killed_rank_ends_the_others_and_the_run_resumes_exactly(tmp_path: Path, ranks: int, victim: int) -> None:
    shares = {"environment__num_envs": 2 * ranks, "training__ranks": ranks}
    config = small(DQN, tmp_path / "runs", **shares, training__total_timesteps=2_000)
    source = tmp_path / "config.yaml"
    source.write_text(config.model_dump_json())
    programs = start_ranks(source, ranks)
    while not list(tmp_path.glob("runs/*/checkpoints/0*192")):
        assert all(program.poll() is None for program in programs), [program.communicate() for program in programs]
    programs[victim].send_signal(signal.SIGKILL)
    for survivor in programs[:victim] + programs[victim + 1 :]:
        assert survivor.wait(60) != 0
        assert "lost the connection to another rank" in survivor.communicate()[1]
    (run,) = (tmp_path / "runs").glob("[!.]*")
    resume_on_ranks(RunDirectory(run), ranks)
    whole = load_experiment(config.model_dump(mode="json"), {"directory": str(tmp_path / "whole")})
    assert fingerprint_of(RunDirectory(run)) == Run.create(whole).train().fingerprint


ROLLBACKS = {
    "by an alert": {"alerts": [{"when": "step >= 96 and step < 200", "for": 64, "do": ["rollback"]}]},
    "after updates that are not finite": {
        "environment__name": SPIKY,
        "environment__kwargs": {"first": 17, "last": 33},
        "stability__skipped_in_row": 2,
    },
}


@pytest.mark.parametrize("why", ROLLBACKS)
def test_ranks_are_rolled_back_together(tmp_path: Path, why: str) -> None:
    config = small(PPO, tmp_path / "alone", **{**TWO, **ROLLBACKS[why]})
    alone = Run.create(config)
    expected = alone.train().fingerprint
    assert '"rollback"' in (alone.directory.path / "events.jsonl").read_text()
    assert fingerprint_of(train_on_ranks(config, tmp_path / "ranks")) == expected
