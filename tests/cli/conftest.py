from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from experiments.runs import PPO, values

from .commands import Here, write_config

# The thread count changes bits, and small networks are fastest with one.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _disk_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here cuts the power, and waiting for the disk is most of the cost of a small checkpoint."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return Here(monkeypatch, capsys)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config file of a short run."""
    return write_config(tmp_path / "small.yaml", values(PPO, Path("runs")))
