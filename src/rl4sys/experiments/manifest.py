"""The manifest of a run: versions, hardware and choices that may change its bits."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import torch

from rl4sys import __version__
from rl4sys.config import flat, plugin_hashes
from rl4sys.environments import Grade
from rl4sys.experiments.config import ExperimentConfig

UNPLANNED = "unplanned"
"""The key of runs whose code failed before they could begin."""


def new_manifest(
    config: ExperimentConfig,
    *,
    threads: int,
    grade: Grade,
    requested_buffer_size: int,
    ranks: Mapping[str, Any],
    kernels: str,
) -> dict[str, Any]:
    """The manifest of a run that starts here and now."""
    return unplanned_manifest(config) | {
        "threads": threads,
        "ranks": dict(ranks),
        "kernels": kernels,
        "grade": grade.name,
        "grade_means": grade.value,
        "buffer_size": {"asked": requested_buffer_size, "used": config.buffer.size},
    }


def unplanned_manifest(config: ExperimentConfig) -> dict[str, Any]:
    """What is known of a run before its environment and its algorithm have been made."""
    return {
        "seed": config.experiment.seed,
        "device": config.experiment.device,
        "inexact": [],
        "plugins": plugin_hashes(config.plugins),
        "config": config.digest(),
        "given": given_settings(config),
        **fingerprint_of_machine(),
    }


def given_settings(config: ExperimentConfig) -> list[str] | None:
    """The dotted keys that files or overrides gave, and not the defaults.

    None if that is not known: a trial gets its config whole from another process, with every default written out.
    """
    whole = config.model_dump(mode="json")
    given = config.model_dump(mode="json", exclude_unset=True)
    if not set(_places(whole)) - set(_places(given)):
        return None
    # Commands write these two sections whole.
    for name, section in (("where", type(config.where)()), ("logging", type(config.logging)())):
        defaults = _places(section.model_dump(mode="json"))
        given[name] = {".".join(place): value for place, value in flat(whole[name]) if value != defaults.get(place)}
    return [".".join(place) for place, value in flat(given) if value != {}]


def _places(values: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    return dict(flat(values))


def changes_since(manifest: Mapping[str, Any], config: ExperimentConfig) -> list[str]:
    """What has changed since a manifest was written and may change the bits of its run."""
    now = {**fingerprint_of_machine(), "device": config.experiment.device, "seed": config.experiment.seed}
    # Older versions recorded fewer packages.
    now["packages"] = {name: now["packages"].get(name) for name in manifest["packages"]}
    watched = ("rl4sys", "python", "packages", "cpu", "device", "seed")
    changes = [f"{name} was {manifest[name]}, now {now[name]}" for name in watched if manifest[name] != now[name]]
    # Manifests of older versions do not list plug-ins.
    plugins, known = plugin_hashes(config.plugins), manifest.get("plugins", {})
    changes += [f"{path} was changed" for path in plugins if known.get(path, plugins[path]) != plugins[path]]
    return [*changes, "config.yaml was changed"] if manifest["config"] != config.digest() else changes


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
        **origin_of_command(),
    }


def origin_of_command() -> dict[str, Any]:
    """The command of this process and the revision of the code it was given in."""
    return {"command": sys.argv, "git": git_revision()}


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
