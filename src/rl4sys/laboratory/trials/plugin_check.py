"""Checks that a run continues with the plug-ins that it began with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rl4sys.config import ConfigError
from rl4sys.experiments import RunDirectory


def require_equal_plugins(run: RunDirectory, texts: Mapping[str, str]) -> None:
    """Refuse to continue a run with other code than it began with."""
    for path in changed_plugins(run, texts):
        raise ConfigError(
            f"The plug-in {path} has changed since {run.path.name} began. Restore it, or train again under another "
            f"--name; to continue anyway, with a note that it is not exact: rl4sys resume {run.path}"
        )


def changed_plugins(run: RunDirectory, texts: Mapping[str, str]) -> list[str]:
    """The plug-ins of a run that have other contents now, by their paths."""
    began = run.read_manifest().get("plugins", {})
    now = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
    return [path for path, sha in began.items() if now.get(path, sha) != sha]
