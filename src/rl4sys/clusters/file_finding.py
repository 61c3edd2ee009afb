"""What is wrong with a cluster file, and the checks that all kinds of files share."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rl4sys.clusters.cluster_file import PLACEHOLDER

_PUBLIC = re.compile(r"--dashboard-host[= ](?!127\.|localhost|::1)(\S+)")
_INSTALLS = re.compile(r"\bpip3? install\b([^|;&\n)]*)")
_VALUE_OPTIONS = {"-c", "--constraint", "-r", "--requirement", "--python", "-p", "--target", "-t", "-e", "--editable"}
"""Options of `pip install` and `uv pip install` that are followed by a value."""


@dataclass(frozen=True, slots=True)
class FileFinding:
    """One thing that is wrong with a cluster file."""

    key: str
    """Where, as a dotted path."""
    problem: str
    advice: str
    severity: Literal["error", "warning"] = "error"
    """With an error, nothing is started."""

    def __str__(self) -> str:
        return f"{self.key}: {self.problem}; {self.advice}."


def find_placeholders(values: Any, path: tuple[str, ...] = ()) -> Iterator[FileFinding]:
    """Values that were left for the user to fill in."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from find_placeholders(value, (*path, str(key)))
    elif isinstance(values, list):
        for number, value in enumerate(values):
            yield from find_placeholders(value, (*path, str(number)))
    elif isinstance(values, str) and PLACEHOLDER in values:
        yield FileFinding(".".join(path), f"'{values}' is a placeholder", "write your own value")


def find_public_dashboard(key: str, script: str) -> Iterator[FileFinding]:
    """A dashboard that other machines can reach: it runs any code that it is sent."""
    if found := _PUBLIC.search(script):
        yield FileFinding(
            key,
            f"the dashboard listens on {found[1]}, where other machines can submit code",
            "set --dashboard-host=127.0.0.1 and reach it through ssh or kubectl",
        )


def find_unpinned(key: str, script: str) -> Iterator[FileFinding]:
    """Packages whose version may differ between two machines of a cluster."""
    for match in _INSTALLS.finditer(script):
        try:
            words = shlex.split(match[1])
        except ValueError:
            words = match[1].split()
        skip = False
        for word in words:
            is_value, skip = skip, word in _VALUE_OPTIONS
            if is_value or word.startswith("-") or "==" in word or "/" in word:
                continue
            yield FileFinding(
                key, f"'{word}' has no exact version", f"pin it: {word}==…; nodes with other versions fail", "warning"
            )


def find_missing_token(key: str, token: str | None, *, is_enabled: bool) -> Iterator[FileFinding]:
    """A cluster that takes jobs and nodes from anyone who reaches it."""
    if not is_enabled:
        yield FileFinding(
            key, "token authentication is off, so any user of the network can run code", "set RAY_AUTH_MODE=token"
        )
    if token is not None and not Path(token).expanduser().is_file():
        yield FileFinding(
            key,
            f"there is no token file {token}",
            "write one with `rl4sys cluster init`, or with: ray get-auth-token --generate",
        )


def find_wrong_number(key: str, value: object, least: int) -> Iterator[FileFinding]:
    """A count that is missing, no integer or too small."""
    if isinstance(value, bool) or not isinstance(value, int):
        yield FileFinding(key, f"it is {value!r}, not an integer", f"write a number from {least}")
    elif value < least:
        yield FileFinding(key, f"it is {value}, less than {least}", f"write a number from {least}")
