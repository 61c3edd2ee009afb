"""Modules and packages that a config names are copied into a run; installed ones are not."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path

import pytest

from rl4sys.config import module_copies
from rl4sys.config.module_copies import write_module_copies


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `own_lab` with a subpackage and data, and a module `own_plant`."""
    root = tmp_path / "here"
    for name in ("__init__.py", "plants/pole.py", "plants/__pycache__/pole.pyc", "gains.json", ".git/HEAD"):
        file = root / "own_lab" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}")
    (root / "own_plant.py").write_text("")
    monkeypatch.syspath_prepend(root)
    importlib.invalidate_caches()
    return root


def copied(directory: Path) -> list[str]:
    place = directory / "plugins" / "modules"
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())


PACKAGE = ["own_lab/__init__.py", "own_lab/gains.json", "own_lab/plants/pole.py"]


def test_a_package_is_copied_as_a_whole_without_caches(lab: Path, tmp_path: Path) -> None:
    write_module_copies(tmp_path / "run", {"environment": {"name": "own_lab.plants.pole:Pole"}})
    assert copied(tmp_path / "run") == PACKAGE


def test_modules_and_plug_ins_by_name_are_copied(lab: Path, tmp_path: Path) -> None:
    write_module_copies(tmp_path / "run", {"environment": {"name": "own_plant:Mine"}, "plugins": ["own_lab.plants"]})
    assert copied(tmp_path / "run") == [*PACKAGE, "own_plant.py"]


def test_installed_and_unknown_packages_are_left_out(tmp_path: Path) -> None:
    values = {"names": ["gymnasium.envs:Env", "rl4sys.environments:Lanes", "nowhere:Env", "json:dumps", "numpy:array"]}
    write_module_copies(tmp_path / "run", values)
    assert copied(tmp_path / "run") == []


def test_a_package_full_of_data_is_left_out_with_a_warning(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module_copies, "_MOST_BYTES", 3)
    with caplog.at_level(logging.WARNING):
        write_module_copies(tmp_path / "run", {"environment": {"name": "own_lab.plants.pole:Pole"}})
    assert copied(tmp_path / "run") == []
    assert "is not copied into the run" in caplog.text
