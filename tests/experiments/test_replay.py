"""Replay as a run uses it: goals, scratch files, and memory that is not enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.bit_flip import NAME as BIT_FLIP
from rl4sys.config import ConfigError
from rl4sys.experiments import ExperimentConfig, Run, load_experiment
from rl4sys.replay import AvailableSpace, HindsightBuffer

from .runs import DQN, OFF_POLICY, PPO, small

REACH = {"environment__name": "rl4sys/PointReach-v0", "algorithm__name": "sac"}
DISTANCE = {"type": "distance", "threshold": 0.1}


def reaching(directory: Path, **changes: Any) -> ExperimentConfig:
    return small(OFF_POLICY, directory, **{**REACH, **changes})


CASES = {
    "goals rewarded by the environment": {"buffer": {"type": "hindsight", "size": 150}},
    "goals rewarded by distance": {"buffer": {"type": "hindsight", "strategy": "episode", "goal_reward": DISTANCE}},
    "goals at the end": {"buffer": {"type": "hindsight", "strategy": "final", "storage": "mmap"}},
    "scratch files": {"buffer": {"type": "prioritized", "size": 150, "storage": "mmap"}},
    "ddpg": {"algorithm__name": "ddpg", "buffer": {"type": "hindsight", "relabel": 1}},
    "td3": {"algorithm__name": "td3", "buffer": {"type": "hindsight"}},
    "collecting meanwhile": {"training__pipelined": True, "buffer": {"type": "hindsight", "size": 150}},
    "sac on choices": {"environment__name": BIT_FLIP, "buffer": {"type": "hindsight", "size": 150}},
}


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] if "meanwhile" in name else []) for name in CASES]
)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, case: str) -> None:
    config = reaching(tmp_path, **CASES[case])
    expected = Run.create(config).train().fingerprint
    run = Run.create(config)
    run.train(stop=lambda: run.steps >= 120)
    resumed = Run.resume(run.directory)
    assert resumed.train().fingerprint == expected
    assert resumed.inexact == ()


def test_dqn_reaches_goals_in_hindsight_and_resumes_exactly(tmp_path: Path) -> None:
    config = small(DQN, tmp_path, environment__name=BIT_FLIP, buffer={"type": "hindsight", "size": 150})
    run = Run.create(config)
    run.train(stop=lambda: run.steps >= 120)
    assert Run.resume(run.directory).train().fingerprint == Run.create(config).train().fingerprint
    assert run.learner.buffer.counts["rewarded_otherwise"] == 0


def test_what_the_environment_and_its_distance_say_is_learned_alike(tmp_path: Path) -> None:
    own = Run.create(reaching(tmp_path, buffer={"type": "hindsight"})).train().fingerprint
    run = Run.create(reaching(tmp_path, buffer={"type": "hindsight", "goal_reward": DISTANCE}))
    assert run.train().fingerprint == own
    assert isinstance(run.learner.buffer, HindsightBuffer)
    assert run.learner.buffer.counts["rewarded_otherwise"] == 0


def test_where_a_replay_lies_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    runs = [Run.create(reaching(tmp_path, buffer__storage=storage)) for storage in ("memory", "mmap")]
    first, second = (run.train().fingerprint for run in runs)
    assert first == second
    assert list((runs[1].directory.path / "scratch").iterdir()) == []


def test_a_run_may_move_its_replay_to_the_disk_when_it_is_resumed(tmp_path: Path) -> None:
    expected = Run.create(reaching(tmp_path)).train().fingerprint
    run = Run.create(reaching(tmp_path))
    run.train(stop=lambda: run.steps >= 120)
    text = run.directory.config.read_text()
    run.directory.config.write_text(text.replace("storage: memory", "storage: mmap"))
    resumed = Run.resume(run.directory)
    assert resumed.train().fingerprint == expected
    assert resumed.inexact == ()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"algorithm__n_step": 3}, r"not windows of 3 steps: set algorithm\.n_step=1"),
        ({"environment__name": "Pendulum-v1"}, r"got \['observation'\]\. Use an environment with goals"),
    ],
)
def test_goals_that_cannot_be_replaced_are_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"cannot learn from a 'hindsight' buffer\. .*{problem}"):
        Run.create(reaching(tmp_path, buffer={"type": "hindsight"}, **changes))


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for 110 transitions of Pendulum, and not for 150."""
    monkeypatch.setattr(AvailableSpace, "at", lambda directory: AvailableSpace(memory=4_950, disk=10**9))


PENDULUM = {"environment__name": "Pendulum-v1", "algorithm__name": "sac"}


@pytest.mark.usefixtures("little_memory")
def test_a_replay_that_does_not_fit_is_refused_before_a_directory_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"buffer\.size: the replay buffer does not fit: 150 × 28 B"):
        Run.create(small(OFF_POLICY, tmp_path, **PENDULUM))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("little_memory")
def test_a_smaller_replay_is_recorded_and_the_run_resumes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run.create(small(OFF_POLICY, tmp_path, **PENDULUM, buffer__on_low_memory="shrink"))
    run.train(stop=lambda: run.steps >= 120)
    assert "The replay buffer is made SMALLER: buffer.size is 110 instead of 150" in caplog.text
    assert load_experiment(run.directory.config).buffer.size == 110
    values = json.loads(run.directory.manifest.read_text())
    assert values["buffer_size"] == {"asked": 150, "used": 110}
    monkeypatch.undo()
    resumed = Run.resume(run.directory)
    resumed.train()
    assert resumed.learner.buffer.counts == {"added": 256, "overwritten": 146}
    assert resumed.inexact == ()


def test_a_resumed_run_never_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(small(OFF_POLICY, tmp_path, **PENDULUM, buffer__on_low_memory="shrink"))
    run.train(stop=lambda: run.steps >= 120)
    monkeypatch.setattr(AvailableSpace, "at", lambda directory: AvailableSpace(memory=4_950, disk=10**9))
    with pytest.raises(ConfigError, match=r"with buffer\.storage=mmap the transitions are kept on the disk"):
        Run.resume(run.directory)


def test_algorithms_that_learn_from_fresh_experience_take_no_replay(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ppo cannot learn from a 'hindsight' buffer\. .*buffer\.type=trajectory"):
        Run.create(small(PPO, tmp_path, environment__name="rl4sys/PointReach-v0", buffer={"type": "hindsight"}))
