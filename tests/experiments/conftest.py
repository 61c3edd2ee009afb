from __future__ import annotations

import os

import pytest
import torch

# The thread count changes bits, and small networks are fastest with one.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _disk_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here cuts the power, and waiting for the disk is most of what a small checkpoint costs."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
