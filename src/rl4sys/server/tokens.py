"""Tokens: who may call, and as which clients."""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rl4sys.server.callers import Caller
from rl4sys.server.options import ImpossibleSetup
from rl4sys.wire.calls import CallFailed, Code

AUTHORIZATION = "authorization"
_SHORTEST = 16
_EXPIRES = "expires="


@dataclass(frozen=True, slots=True)
class _Token:
    digest: bytes
    patterns: tuple[str, ...]
    expires: float | None


class TokenFile:
    """Lines of a token, an optional `expires=2027-01-31`, and the client ids (with `*` and `?`) that it may use.

    Empty lines and those after `#` are passed over. The file is read again when it changes, so that removing a line
    revokes its token at once.
    """

    def __init__(self, path: Path, wall_clock: Callable[[], float] = time.time) -> None:
        self._path, self._wall_clock = path, wall_clock
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._tokens = _parse(path)

    def authenticate(self, metadata: Iterable[tuple[str, str | bytes]], peer: str) -> Caller:
        """The caller that sent these metadata, or UNAUTHENTICATED."""
        given = [value for key, value in metadata if key.lower() == AUTHORIZATION]
        if len(given) != 1 or not isinstance(given[0], str) or not given[0].startswith("Bearer "):
            raise _unauthenticated("no token came along, or not as 'authorization: Bearer TOKEN'")
        digest = _digest(given[0].removeprefix("Bearer "))
        # All are compared, each in constant time: how long it takes tells nothing about them.
        matching = [token for token in self._current() if hmac.compare_digest(token.digest, digest)]
        if not matching:
            raise _unauthenticated("the token is unknown or revoked")
        if matching[0].expires is not None and matching[0].expires <= self._wall_clock():
            raise _unauthenticated("the token has expired")
        return Caller(matching[0].patterns, peer)

    def _current(self) -> list[_Token]:
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp:
                self._tokens = _parse(self._path)
                self._stamp = stamp
            return self._tokens

    def _look(self) -> tuple[int, int, int]:
        try:
            seen = self._path.stat()
        except OSError:
            # Without its file no token is valid; it may be about to be replaced.
            return 0, 0, 0
        return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _parse(path: Path) -> list[_Token]:
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return []
    return [_token(path, number, line.split()) for number, line in enumerate(lines, 1) if _is_token(line)]


def _is_token(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _token(path: Path, number: int, words: list[str]) -> _Token:
    expires = None
    if len(words) > 1 and words[1].startswith(_EXPIRES):
        try:
            expires = datetime.fromisoformat(words.pop(1).removeprefix(_EXPIRES)).replace(tzinfo=UTC).timestamp()
        except ValueError as error:
            raise ImpossibleSetup(f"{path}, line {number}: {error}. Write expires=2027-01-31.") from error
    if len(words) < 2 or len(words[0]) < _SHORTEST:
        raise ImpossibleSetup(
            f"{path}, line {number}: expected a token of at least {_SHORTEST} characters and the client ids that it "
            f"may use, such as: {'x' * _SHORTEST} lander-*"
        )
    return _Token(_digest(words[0]), tuple(words[1:]), expires)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _unauthenticated(problem: str) -> CallFailed:
    return CallFailed(Code.UNAUTHENTICATED, f"Not allowed: {problem}. Ask for a token of this server.")
