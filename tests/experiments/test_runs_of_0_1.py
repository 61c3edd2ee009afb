"""A run that version 0.1 left after a kill: dqn with prioritized replay, one checkpoint at step 200."""

from __future__ import annotations

import logging
import tarfile
from pathlib import Path

import pytest

from rl4sys.experiments import Run, RunDirectory
from rl4sys.experiments.policies.export import export_policy
from rl4sys.experiments.policies.trained_policy import find_policy


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    with tarfile.open(Path(__file__).parent / "run_of_0_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return RunDirectory(tmp_path / "dqn-of-0.1")


def test_it_continues_with_one_warning(run: RunDirectory, caplog: pytest.LogCaptureFixture) -> None:
    with Run.resume(run) as resumed:
        assert (resumed.steps, resumed.learner.updates) == (200, 50)
        resumed.train(stop=lambda: resumed.steps >= 240)
        assert (resumed.steps, resumed.learner.updates) == (240, 70)
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith("Continuing, not exact: rl4sys was 0.1.0, now ")


def test_its_policy_exports_without_a_word_about_training(
    run: RunDirectory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert export_policy(find_policy(run.path), "rl4sys", tmp_path / "a.rl4sys").parity.largest < 1e-5
    assert not caplog.records
