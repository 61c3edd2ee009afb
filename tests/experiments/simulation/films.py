"""Videos read back by ffmpeg itself."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array


class Film(NamedTuple):
    """What is in a video file."""

    codec: str
    frames_per_second: float
    images: Array
    """uint8 [frames, height, width, 3]."""


def read_film(path: Path) -> Film:
    """Decode a video; ffmpeg describes it on its standard error."""
    import imageio_ffmpeg

    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(command, capture_output=True, check=True)
    found = re.search(r"Video: (\w+).*?, (\d+)x(\d+).*?, ([\d.]+) fps", decoded.stderr.decode())
    assert found is not None, decoded.stderr
    width, height = int(found[2]), int(found[3])
    images = np.frombuffer(decoded.stdout, np.uint8).reshape(-1, height, width, 3)
    return Film(found[1], float(found[4]), images)
