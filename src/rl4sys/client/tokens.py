"""The token that a client sends with every call. A token file can be replaced while the client runs."""

from __future__ import annotations

from pathlib import Path


def read_token(path: Path) -> str:
    """Read a token from the first line of a file."""
    return path.read_text().split("\n", 1)[0].strip()


class Token:
    """A token; its file is read again when it changes."""

    def __init__(self, text: str, path: Path | None) -> None:
        self._text, self._path = text, path
        self._stamp: tuple[int, int, int] | None = None

    def current(self) -> str:
        """The present token; the previous one while the file is missing or unreadable."""
        if self._path is not None:
            try:
                seen = self._path.stat()
                stamp = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
                if stamp != self._stamp:
                    self._text, self._stamp = read_token(self._path), stamp
            except (OSError, UnicodeDecodeError):
                # The file may be being replaced; the server refuses the old token if it is no longer valid.
                return self._text
        return self._text
