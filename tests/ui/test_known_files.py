"""Only known files below a known directory are sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rl4sys.ui.known_files import UnknownFile, known_file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    run = tmp_path / "run"
    (run / "videos").mkdir(parents=True)
    (run / "videos" / "one.mp4").write_bytes(b"video")
    return run


def test_a_known_file_is_found(run: Path) -> None:
    assert known_file(run, "videos/one.mp4", {"videos/one.mp4"}).read_bytes() == b"video"


@pytest.mark.parametrize("name", ["../secret", "videos/../../secret", "/etc/passwd", "videos/two.mp4", "", ".", "\0"])
def test_other_names_are_refused(run: Path, name: str) -> None:
    with pytest.raises(UnknownFile):
        known_file(run, name, {"videos/one.mp4"})


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "videos", "gone", "a\0b"])
def test_even_a_name_that_is_listed_stays_below_the_directory(run: Path, name: str) -> None:
    with pytest.raises(UnknownFile):
        known_file(run, name, {name})


def test_links_that_lead_out_are_refused(run: Path) -> None:
    os.symlink(run.parent / "secret", run / "inside")
    os.symlink("/etc", run / "etc")
    os.symlink(run / "loop", run / "loop")
    os.mkfifo(run / "pipe")
    for name in ("inside", "etc/passwd", "loop", "pipe"):
        with pytest.raises(UnknownFile):
            known_file(run, name, {name})


def test_a_link_within_the_run_is_followed(run: Path) -> None:
    os.symlink(run / "videos" / "one.mp4", run / "newest.mp4")
    assert known_file(run, "newest.mp4", {"newest.mp4"}).name == "one.mp4"
