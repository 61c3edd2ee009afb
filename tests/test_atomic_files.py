from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rl4sys.atomic_files import publish_directory, replace_file, replace_link


def test_a_replaced_file_has_its_new_contents_and_no_temporary_file_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_cannot_be_replaced_keeps_its_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_link_can_be_replaced(tmp_path: Path) -> None:
    replace_link(tmp_path / "latest", "1")
    replace_link(tmp_path / "latest", "2")
    assert os.readlink(tmp_path / "latest") == "2"


def test_a_published_directory_replaces_an_older_one(tmp_path: Path) -> None:
    for name in ("final", "aside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "from").write_text(name)
    publish_directory(tmp_path / "aside", tmp_path / "final")
    assert (tmp_path / "final" / "from").read_text() == "aside"
    assert os.listdir(tmp_path) == ["final"]


def test_an_older_directory_is_restored_when_the_new_one_cannot_be_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "final").mkdir()
    (tmp_path / "aside").mkdir()
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == "aside":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="Input/output error"):
        publish_directory(tmp_path / "aside", tmp_path / "final")
    assert sorted(os.listdir(tmp_path)) == ["aside", "final"]
