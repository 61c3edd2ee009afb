from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands import Here

from .fake_programs import FakePrograms


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return Here(monkeypatch, capsys)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakePrograms:
    """Fake commands of Ray, Kubernetes, SkyPilot and SLURM; no cluster exists before."""
    made = FakePrograms(tmp_path / "bin", "ray", "kubectl", "sky", "sbatch", "squeue", "scancel", "rsync")
    made.answer("get-head-ip", 1)
    made.answer("kubectl get raycluster", 1)
    monkeypatch.setenv("PATH", made.path())
    return made
