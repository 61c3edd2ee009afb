from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl4sys.checkpoints import Checkpoints
from rl4sys.experiments import NotSaved, Run

from .runs import DQN, PPO, small


def test_a_full_disk_ends_a_run_in_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(PPO, tmp_path)
    run = Run.create(config)

    def full(descriptor: int) -> None:
        if run.steps >= 128:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NotSaved, match=r"at step 128: No space .* Free some space, then .*rl4sys resume"):
            run.train()
    assert Checkpoints(run.directory.checkpoints, 2).load().step == 64
    assert Run.resume(run.directory).train().fingerprint == Run.create(config).train().fingerprint


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 300 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_run_that_filled_its_disk_resumes_when_there_is_space(small_disk: Path, tmp_path: Path) -> None:
    config = small(DQN, small_disk, network__actor={"hidden_dims": [64]})
    run = Run.create(config)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096 - 100_000))
    with pytest.raises(NotSaved, match="No space left on device"):
        run.train()
    assert not list(run.directory.checkpoints.glob(".*"))
    ballast.unlink()
    resumed = Run.resume(run.directory)
    assert resumed.train().finished
