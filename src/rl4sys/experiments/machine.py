"""The versions and hardware of a run, which may change its bits."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata
from typing import Any

import torch

from rl4sys import __version__


def fingerprint_of_machine() -> dict[str, Any]:
    """Versions, revision and hardware."""
    packages = ("torch", "numpy", "gymnasium", "box2d", "mujoco", "dm_control")
    return {
        "rl4sys": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "platform": platform.platform(),
        "cpu": str(torch.backends.cpu.get_cpu_capability()),
        "cores": os.cpu_count(),
        "command": sys.argv,
        "git": git_revision(),
    }


def git_revision() -> dict[str, Any] | None:
    """Revision of the working directory and whether it has changes, if it is a git checkout."""
    try:
        revision = _git("rev-parse", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return {"revision": revision, "dirty": bool(changes)}


def _git(*arguments: str) -> str:
    finished = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=10, check=True)
    return finished.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
