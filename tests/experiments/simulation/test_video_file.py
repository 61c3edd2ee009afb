from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from rl4sys.experience import Array
from rl4sys.experiments.simulation.video_file import VideoFile, VideoUnavailable, require_video

from .films import read_film

imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")


def frame(shade: int, height: int = 32, width: int = 48) -> Array:
    return np.full((height, width, 3), shade, np.uint8)


def _record(file: VideoFile, *frames: Array) -> None:
    with file:
        for shown in frames:
            file.add(shown)


def test_frames_are_read_back_as_they_were_shown(tmp_path: Path) -> None:
    with VideoFile(tmp_path / "new" / "a.mp4", 20.0) as file:
        for shade in (0, 80, 160, 240):
            file.add(frame(shade))
    assert file.video == (tmp_path / "new" / "a.mp4", 4, 20.0, 48, 32)
    film = read_film(tmp_path / "new" / "a.mp4")
    assert (film.codec, film.frames_per_second, film.images.shape) == ("h264", 20.0, (4, 32, 48, 3))
    np.testing.assert_allclose(film.images.mean(axis=(1, 2, 3)), [0, 80, 160, 240], atol=8)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.mp4"]


def test_odd_sizes_are_made_even(tmp_path: Path) -> None:
    with VideoFile(tmp_path / "a.mp4", 30.0) as file:
        file.add(frame(9, height=33, width=47))
    assert file.video is not None
    assert (file.video.width, file.video.height) == (48, 34)


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"earlier")
    file = VideoFile(tmp_path / "a.mp4", 30.0)
    with pytest.raises(VideoUnavailable, match="have one size"):
        _record(file, frame(0), frame(0, height=64))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.mp4", b"earlier")]


def test_no_frames_are_no_video(tmp_path: Path) -> None:
    with VideoFile(tmp_path / "a.mp4", 30.0) as file:
        pass
    assert file.video is None
    assert not list(tmp_path.iterdir())


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VideoUnavailable, match=r"let it end in \.mp4"):
        require_video(tmp_path / "a.txt")
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(VideoUnavailable, match="is a directory"):
        require_video(tmp_path / "a.mp4")


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(VideoUnavailable, match=r"pip install 'rl4sys\[video\]'"):
        require_video(tmp_path / "a.mp4")


def test_a_missing_ffmpeg_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise RuntimeError("No ffmpeg exe could be found.")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", missing)
    with pytest.raises(VideoUnavailable, match="Install ffmpeg, or let the variable IMAGEIO_FFMPEG_EXE"):
        require_video(tmp_path / "a.mp4")
