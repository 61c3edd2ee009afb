"""A run is a directory; here it is made, described and found again."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from rl4sys import __version__
from rl4sys.atomic_files import replace_file
from rl4sys.experiments.config import ExperimentConfig


class RunNotFound(FileNotFoundError):
    """No run directory is meant by what was given."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Paths within one run."""

    path: Path

    @classmethod
    def create(cls, config: ExperimentConfig, now: datetime.datetime) -> RunDirectory:
        """A new directory with a name that tells experiment, seed and time."""
        parent = Path(config.experiment.directory)
        stem = f"{config.name}-seed{config.experiment.seed}-{now:%Y%m%d-%H%M%S}"
        parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1_000):
            path = parent / (stem if attempt == 1 else f"{stem}-{attempt}")
            try:
                path.mkdir()
            except FileExistsError:
                continue
            run = cls(path)
            values = config.model_dump(mode="json")
            replace_file(run.config, yaml.safe_dump(values, sort_keys=False).encode())
            return run
        raise RunNotFound(f"Could not find a free name for a run like {parent / stem}; remove old runs.")

    @classmethod
    def find(cls, text: str | Path) -> RunDirectory:
        """The run of a path, or of the beginning of a name within `runs/`."""
        path = Path(text)
        if (path / "config.yaml").is_file():
            return cls(path)
        candidates = sorted(p for p in Path("runs").glob(f"{path.name}*") if (p / "config.yaml").is_file())
        if len(candidates) == 1:
            return cls(candidates[0])
        if candidates:
            names = "".join(f"\n  {candidate}" for candidate in candidates[-8:])
            raise RunNotFound(f"'{text}' fits {len(candidates)} runs; give more of the name:{names}")
        if path.exists():
            raise RunNotFound(f"'{text}' is not a run: it has no config.yaml.")
        raise RunNotFound(f"There is no run '{text}', here or in runs/. `ls runs` shows the runs of this directory.")

    @property
    def config(self) -> Path:
        """The fully resolved config."""
        return self.path / "config.yaml"

    @property
    def manifest(self) -> Path:
        """Versions, revision, seed, threads."""
        return self.path / "manifest.json"

    @property
    def metrics(self) -> Path:
        """One record per line."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """One directory per checkpoint."""
        return self.path / "checkpoints"

    @property
    def policies(self) -> Path:
        """Policies that can act without the rest of the run."""
        return self.path / "policies"

    @property
    def tensorboard(self) -> Path:
        """Event files."""
        return self.path / "tensorboard"

    @property
    def result(self) -> Path:
        """How the run ended."""
        return self.path / "result.json"

    def write_manifest(self, facts: dict[str, Any]) -> None:
        """Keep what is needed to understand and repeat the run."""
        replace_file(self.manifest, json.dumps(facts, indent=1).encode())

    def read_manifest(self) -> dict[str, Any] | None:
        """The manifest, or None when the run was killed before it was written."""
        if not self.manifest.is_file():
            return None
        facts: dict[str, Any] = json.loads(self.manifest.read_bytes())
        return facts


def fingerprint_of_machine() -> dict[str, Any]:
    """Versions and hardware: what may change the bits of a run."""
    packages = ("torch", "numpy", "gymnasium", "box2d")
    return {
        "rl4sys": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "platform": platform.platform(),
        "cpu": _cpu_capability(),
        "cores": os.cpu_count(),
        "command": sys.argv,
        "git": git_revision(),
    }


def git_revision() -> dict[str, Any] | None:
    """Revision of the working directory and whether it has changes, if it is a git checkout."""
    try:
        revision = subprocess.run(
            ["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
        changes = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return {"revision": revision, "dirty": bool(changes.strip())}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_capability() -> str:
    import torch

    return str(torch.backends.cpu.get_cpu_capability())
