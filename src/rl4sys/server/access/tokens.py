"""The token file: who may call, as which clients, for which policies, and how fast."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from rl4sys.config import ConfigError, parse
from rl4sys.server.access.caller import Caller, Role
from rl4sys.server.options import ImpossibleSetup, Rates
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.suggestions import did_you_mean
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.token_hash import stored_digest, token_digest

_log = logging.getLogger(__name__)

AUTHORIZATION = "authorization"
_SHORTEST = 16
_TOPIC = "tokens"
_OPTIONS = ("role", "name", "expires", "policies", *Rates.model_fields)


@dataclass(frozen=True, slots=True)
class _Token:
    digest: bytes
    patterns: tuple[str, ...]
    policies: tuple[str, ...] | None
    expires: float | None
    rates: Rates | None
    role: Role
    name: str

    def caller(self, peer: str) -> Caller:
        # A part of the digest identifies the token without revealing it.
        token = self.digest.hex()[:12]
        return Caller(self.patterns, peer, self.policies, token, self.rates, self.role, self.name)


class TokenFile:
    """Reads lines of a token or its hash, its options, and the client ids (with `*` and `?`) that it may use:

    `role=viewer`, `client` (the default) or `operator`, where viewers and operators without client ids see all of them;
    `name=alice` for logs and audits; `expires=2027-01-31`; `policies=lander-*,fleet` for the policy ids that its
    clients may join, which are otherwise those that the client patterns match; `bytes_per_second=1e6` and
    `steps_per_second=5000` for all its clients together, instead of what the server grants to each token.

    Empty lines and comments after ` #` are ignored. The file is read again when it changes, so that removing a line
    revokes its token at once; a line that is then wrong is ignored, and log and status of the server say so. Without
    the file no token is valid; if it cannot be read, tokens stay as they were.
    """

    def __init__(
        self, path: Path, wall_clock: Callable[[], float] = time.time, warnings: ServerWarnings | None = None
    ) -> None:
        self._path, self._wall_clock, self._warnings = path, wall_clock, warnings or ServerWarnings()
        self._lock = threading.Lock()
        self._stamp = self._look()
        try:
            self._tokens = [_token(path, number, words) for number, words in _lines(path)]
        except OSError as error:
            raise ImpossibleSetup(
                f"{path} cannot be read: {error.strerror}. Let the user of the server read it."
            ) from error

    def authenticate(self, metadata: Iterable[tuple[str, str | bytes]], peer: str) -> Caller:
        """The caller that sent these metadata, or UNAUTHENTICATED."""
        given = [value for key, value in metadata if key.lower() == AUTHORIZATION]
        if len(given) != 1 or not isinstance(given[0], str) or not given[0].startswith("Bearer "):
            raise _unauthenticated("the call has no token in the form 'authorization: Bearer TOKEN'")
        digest = token_digest(given[0].removeprefix("Bearer "))
        # All are compared, each in constant time, so that the time reveals nothing about them.
        matching = [token for token in self._current() if hmac.compare_digest(token.digest, digest)]
        if not matching:
            raise _unauthenticated("the token is unknown or revoked")
        if matching[0].expires is not None and matching[0].expires <= self._wall_clock():
            raise _unauthenticated("the token has expired")
        return matching[0].caller(peer)

    def reload(self) -> None:
        """Read the file again if it changed, without waiting for the next call."""
        self._current()

    def _current(self) -> list[_Token]:
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp:
                self._stamp = stamp
                self._read_again()
            return self._tokens

    def _read_again(self) -> None:
        problems = []
        try:
            lines = _lines(self._path)
        except FileNotFoundError:
            self._tokens, lines = [], []
            problems.append(f"{self._path} is missing, so no token is valid. Restore it.")
        except OSError as error:
            self._warnings.set(
                _TOPIC, f"{self._path} cannot be read ({error.strerror}); tokens are as they were before."
            )
            return
        tokens = []
        for number, words in lines:
            try:
                tokens.append(_token(self._path, number, words))
            except ImpossibleSetup as error:
                # A line that cannot be read lets no caller in; the other lines stay valid.
                problems.append(f"{error} Until it is repaired, its token is refused.")
        self._tokens = tokens
        if problems:
            self._warnings.set(_TOPIC, " ".join(problems))
        else:
            self._warnings.clear(_TOPIC)
            _log.info("%s was read again: %d tokens.", self._path, len(tokens))

    def _look(self) -> tuple[int, int, int]:
        try:
            seen = self._path.stat()
        except OSError:
            return 0, 0, 0
        return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The words before a `#` of each line that has any, with its line number."""
    lines = path.read_text("utf-8", errors="replace").splitlines()
    return [(number, words) for number, line in enumerate(lines, 1) if (words := _words(line))]


def _words(line: str) -> list[str]:
    """The words of a line up to a comment, the first word with a leading `#`: no client name has one."""
    return list(takewhile(lambda word: not word.startswith("#"), line.split()))


def _token(path: Path, number: int, words: list[str]) -> _Token:
    place = f"{path}, line {number}"
    secret, *rest = words
    options = dict(word.split("=", 1) for word in rest if "=" in word)
    patterns = tuple(word for word in rest if "=" not in word)
    for name in options.keys() - set(_OPTIONS):
        raise ImpossibleSetup(f"{place}: unknown option '{name}='{did_you_mean(name, _OPTIONS) or '.'}")
    role = _role(place, options.get("role", Role.CLIENT))
    if len(secret) < _SHORTEST or not (patterns or role is not Role.CLIENT):
        raise ImpossibleSetup(
            f"{place}: expected a token of at least {_SHORTEST} characters and the client ids that it may use, such "
            f"as: {'x' * _SHORTEST} lander-*"
        )
    policies = tuple(options["policies"].split(",")) if "policies" in options else None
    rates = {name: options[name] for name in Rates.model_fields if name in options}
    return _Token(
        _stored(place, secret),
        patterns or ("*",),
        policies,
        _expiry(place, options.get("expires")),
        _rates(place, rates) if rates else None,
        role,
        options.get("name", ""),
    )


def _role(place: str, text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        known = ", ".join(Role)
        raise ImpossibleSetup(
            f"{place}: unknown role '{text}'{did_you_mean(text, list(Role)) or '.'} The roles are {known}."
        ) from None


def _stored(place: str, secret: str) -> bytes:
    try:
        return stored_digest(secret)
    except ValueError as error:
        raise ImpossibleSetup(f"{place}: {error}.") from error


def _expiry(place: str, text: str | None) -> float | None:
    """Seconds since 1970, in UTC unless the text has another time zone."""
    if text is None:
        return None
    try:
        expiry = datetime.fromisoformat(text)
    except ValueError as error:
        raise ImpossibleSetup(f"{place}: {error}. Write expires=2027-01-31.") from error
    return (expiry if expiry.tzinfo is not None else expiry.replace(tzinfo=UTC)).timestamp()


def _rates(place: str, values: dict[str, str]) -> Rates:
    try:
        return parse(Rates, values)
    except ConfigError as error:
        raise ImpossibleSetup(f"{place}: {error}.") from error


def _unauthenticated(problem: str) -> CallFailed:
    return CallFailed(Code.UNAUTHENTICATED, f"Not allowed: {problem}. Ask for a token of this server.")
