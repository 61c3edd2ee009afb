"""The token that a client shows to the server. One that is kept in a file can be replaced while the client runs."""

from __future__ import annotations

from pathlib import Path


def read_token(path: Path) -> str:
    """The first line of a file."""
    return path.read_text().split("\n", 1)[0].strip()


class Token:
    """What to show with the next call: the file is read again when it has changed."""

    def __init__(self, text: str, path: Path | None) -> None:
        self._text, self._path = text, path
        self._stamp: tuple[int, int, int] | None = None

    def current(self) -> str:
        """The newest text; while its file is away or cannot be read, the one before."""
        if self._path is not None:
            try:
                seen = self._path.stat()
                stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
                if stamp != self._stamp:
                    self._text, self._stamp = read_token(self._path), stamp
            except (OSError, UnicodeDecodeError):
                # It may be about to be replaced; the server says so if the old token does not do.
                return self._text
        return self._text
