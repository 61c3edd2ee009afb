"""A config file of every version that there ever was still loads, and can be rewritten in today's format."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from rl4sys.config import CONFIG_VERSION, Migrations
from rl4sys.config.files import read_file
from rl4sys.config.migrations import migrated, rewrite
from rl4sys.experiments import load_experiment

FILES = sorted(path for path in (Path(__file__).parent / "old_versions").iterdir() if path.suffix != ".md")


def version_of(path: Path) -> int:
    return int(path.name.removeprefix("v").partition("_")[0])


def test_there_is_a_file_of_every_version() -> None:
    assert {version_of(path) for path in FILES} == set(range(1, CONFIG_VERSION + 1))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_old_file_loads(path: Path) -> None:
    assert read_file(path).get("config_version", 1) == version_of(path)
    config = load_experiment(path)
    assert config.config_version == CONFIG_VERSION
    assert config.algorithm.gamma == 0.99


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_rewritten_file_means_the_same(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    shutil.copy(path, copy)
    change = migrated(copy)
    copy.write_text(change.text)
    assert load_experiment(copy) == load_experiment(path)
    assert not migrated(copy).is_needed


def renaming() -> Migrations:
    migrations = Migrations(current=2)

    @migrations.register(from_version=1)
    def rename(values: dict) -> dict:
        values["algorithm"] = values.pop("agent")
        return values

    return migrations


def test_a_rewritten_file_leaves_the_old_one_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "old.yaml"
    text = "# precious\nextends: [base.yaml]\nagent: {name: ppo}\n"
    for number in (1, 2):
        file.write_text(text)
        change = migrated(file, renaming())
        assert change.is_needed
        backup = rewrite(change)
        assert backup.name == ("old.yaml.v1" if number == 1 else "old.yaml.v1.2")
        assert backup.read_text() == text
        assert yaml.safe_load(file.read_text()) == {
            "extends": ["base.yaml"],
            "config_version": 2,
            "algorithm": {"name": "ppo"},
        }
    assert not migrated(file, renaming()).is_needed
