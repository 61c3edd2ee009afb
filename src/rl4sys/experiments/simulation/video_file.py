"""Writes videos with imageio and ffmpeg; a file appears only when it is complete."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from rl4sys.experience import Array

_SUFFIXES = (".mp4", ".mkv", ".mov")
_QUALITY = 7
"""Of 10: text and thin lines stay readable, at a few hundred kilobytes a minute."""


class VideoUnavailable(RuntimeError):
    """A video cannot be made here, or not under this name."""


class Video(NamedTuple):
    """What was recorded."""

    path: Path
    frames: int
    frames_per_second: float
    width: int
    height: int


def require_video(path: Path) -> None:
    """Refuse a video that could not be written, before anything is spent on it."""
    if path.suffix.lower() not in _SUFFIXES:
        raise VideoUnavailable(f"'{path}' is no name for a video; let it end in {' or '.join(_SUFFIXES)}.")
    if path.is_dir():
        raise VideoUnavailable(f"'{path}' is a directory; give the name of a file.")
    for package in ("imageio", "imageio_ffmpeg"):
        if importlib.util.find_spec(package) is None:
            raise VideoUnavailable(f"Videos need the package '{package}'. Install it with: pip install 'rl4sys[video]'")
    try:
        importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe()
    except RuntimeError as error:
        raise VideoUnavailable(
            "There is no ffmpeg to write videos with. Install ffmpeg, or let the variable IMAGEIO_FFMPEG_EXE say where "
            "it is."
        ) from error


class VideoFile:
    """Frames go in, a video (H.264) comes out when it is left without an error."""

    def __init__(self, path: Path, frames_per_second: float) -> None:
        require_video(path)
        self._path, self._fps = path, frames_per_second
        self._aside = path.with_name(f".{path.stem}.tmp{path.suffix}")
        self._writer: Any = None
        self._shape: tuple[int, ...] = ()
        self._frames = 0
        self.video: Video | None = None
        """What was recorded, once that is done; None where there was no frame."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
            if kind is None:
                self._aside.replace(self._path)
                height, width = self._shape[:2]
                self.video = Video(self._path, self._frames, self._fps, width, height)
        finally:
            self._aside.unlink(missing_ok=True)

    def add(self, frame: Array) -> None:
        """One more frame, uint8 [height, width, 3]."""
        frame = _even(frame)
        if self._writer is None:
            self._writer = self._open()
            self._shape = frame.shape
        if frame.shape != self._shape:
            raise VideoUnavailable(
                f"The frames of a video have one size; got {frame.shape[:2]} after {self._shape[:2]}. "
                f"Let the environment draw at a fixed size."
            )
        self._writer.append_data(frame)
        self._frames += 1

    def _open(self) -> Any:
        from imageio import v2

        self._path.parent.mkdir(parents=True, exist_ok=True)
        return v2.get_writer(
            self._aside,
            format="FFMPEG",
            mode="I",
            fps=self._fps,
            codec="libx264",
            quality=_QUALITY,
            macro_block_size=2,
            ffmpeg_log_level="error",
        )


def _even(frame: Array) -> Array:
    """The frame with an even width and height, which H.264 wants: the last row or column is repeated."""
    height, width = frame.shape[:2]
    if height % 2 or width % 2:
        frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    return np.ascontiguousarray(frame)
