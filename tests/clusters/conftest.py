from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands import Here

from .fake_programs import FakePrograms
from .fake_slurm import FakeSlurm

TESTS = Path(__file__).parents[1]


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


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSlurm]:
    """SLURM's commands, whose jobs are processes here; in an empty directory."""
    made = FakeSlurm(tmp_path / "slurm")
    monkeypatch.setenv("PATH", f"{made.directory}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", f"{TESTS}:{TESTS.parent / 'src'}")
    monkeypatch.chdir(tmp_path)
    yield made
    made.end_all()
