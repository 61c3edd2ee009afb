from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from rl4sys.laboratory.trials.working_directory import WorkingDirectory


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_directory_of_a_killed_trial_is_removed_by_the_next() -> None:
    killed = WorkingDirectory()
    (killed.path / "runs").mkdir()
    os.close(killed.descriptor)
    following = WorkingDirectory()
    assert not killed.path.exists()
    following.remove()
    assert not following.path.exists()


def test_the_directory_of_a_process_that_lives_stays() -> None:
    first = WorkingDirectory()
    inherited = os.dup(first.descriptor)
    os.close(first.descriptor)
    second = WorkingDirectory()
    assert first.path.exists()
    os.close(inherited)
    second.remove()


def test_the_output_of_a_trial_that_failed_is_kept() -> None:
    failed = WorkingDirectory()
    failed.keep()
    WorkingDirectory().remove()
    assert failed.path.exists()
