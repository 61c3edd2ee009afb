"""Files that the page may send: by a known name, below a known directory."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


class UnknownFile(LookupError):
    """A name that is not one of the known files, or leads out of the directory."""


def known_file(directory: Path, name: str, known: Collection[str]) -> Path:
    """The path of a file that may be sent; raises `UnknownFile` for every other name.

    `known` has names relative to the directory, such as `videos/episode-3.mp4`. A link that leads out of the directory
    is refused, and so is everything that is no regular file.
    """
    if name not in known:
        raise UnknownFile(f"This run has no file '{name}' to show.")
    try:
        whole = directory.resolve(strict=True)
        path = (whole / name).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise UnknownFile(f"This run no longer has the file '{name}'.") from None
    if not path.is_relative_to(whole) or not path.is_file():
        raise UnknownFile(f"'{name}' is no file of this run.")
    return path
