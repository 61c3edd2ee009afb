from __future__ import annotations

import logging
from pathlib import Path

import pytest

from experiments.runs import DQN, PPO, small
from experiments.trained import trained_run
from rl4sys.experiments import Result, Run, RunDirectory

pytest.importorskip("imageio_ffmpeg")
FILMED = {"training__video_frequency": 100, "training__video_length": 6}


def fingerprint(directory: RunDirectory) -> object:
    result = Result.read(directory.result)
    assert result is not None
    return result.fingerprint


@pytest.mark.slow
def test_videos_appear_at_their_steps_and_change_nothing_that_is_learned(tmp_path: Path) -> None:
    filmed, plain = trained_run(PPO, tmp_path / "a", **FILMED), trained_run(PPO, tmp_path / "b")
    names = sorted(path.name for path in filmed.videos.iterdir())
    assert names == ["step_000000000128.mp4", "step_000000000224.mp4", "step_000000000256.mp4"]
    assert all(path.stat().st_size > 1_000 for path in filmed.videos.iterdir())
    assert fingerprint(filmed) == fingerprint(plain)
    assert not plain.videos.exists()


@pytest.mark.slow
def test_a_run_with_videos_resumes_exactly(tmp_path: Path) -> None:
    whole = trained_run(DQN, tmp_path / "a", **FILMED)
    run = Run.create(small(DQN, tmp_path / "b", **FILMED))
    run.train(stop=lambda: run.steps >= 150)
    resumed = Run.resume(run.directory)
    assert resumed.inexact == ()
    resumed.train()
    assert fingerprint(run.directory) == fingerprint(whole)
    assert sorted(path.name for path in run.directory.videos.iterdir()) == sorted(
        path.name for path in whole.videos.iterdir()
    )


def test_other_videos_are_no_other_run(tmp_path: Path) -> None:
    assert small(PPO, tmp_path).digest() == small(PPO, tmp_path, **FILMED).digest()


def test_a_failing_video_gets_one_warning_and_training_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    invisible = {**PPO, "environment": {"name": "rl4sys/Identity-v0", "num_envs": 2}}
    with caplog.at_level(logging.WARNING):
        directory = trained_run(invisible, tmp_path, **FILMED)
    messages = [record.getMessage() for record in caplog.records if "No video" in record.getMessage()]
    assert len(messages) == 1
    assert "cannot be rendered as 'rgb_array'" in messages[0]
    result = Result.read(directory.result)
    assert result is not None
    assert result.finished
