"""The file of a cluster, of whichever kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

ClusterKind = Literal["gce", "ec2", "kuberay", "sky", "slurm"]
KINDS: tuple[ClusterKind, ...] = get_args(ClusterKind)

PLACEHOLDER = "CHANGE-ME"
"""The beginning of values that only the user knows."""
_PROVIDERS: Mapping[str, ClusterKind] = {"gcp": "gce", "aws": "ec2"}
_DIRECTIVE = re.compile(r"^#SBATCH\s+--([a-z-]+)(?:[=\s]+(\S+))?\s*$", re.MULTILINE)


class ClusterFileError(ValueError):
    """A file that is not that of a cluster, or cannot be used."""


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """A cluster file that was read, but not checked."""

    path: Path
    kind: ClusterKind
    values: Mapping[str, Any]
    """The document, or the directives of a SLURM script by name."""
    text: str

    @property
    def name(self) -> str:
        """The name of the cluster, by which its machines are found again."""
        match self.kind:
            case "gce" | "ec2":
                found = self.values.get("cluster_name")
            case "kuberay":
                found = section(self.values, "metadata").get("name")
            case "sky":
                found = self.values.get("name")
            case "slurm":
                found = self.values.get("job-name")
        return str(found or self.path.stem)


def read_cluster_file(path: Path) -> ClusterFile:
    """Read a file and find out its kind."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ClusterFileError(
            f"There is no file {path}. Write one with: rl4sys cluster init gce|ec2|kuberay|sky|slurm --output {path}"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterFileError(f"{path} cannot be read: {error}. Give a cluster file, which is text.") from None
    directives = {name: value or "" for name, value in _DIRECTIVE.findall(text)}
    if text.startswith("#!") or directives:
        return ClusterFile(path, "slurm", directives, text)
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ClusterFileError(f"{path} is not YAML: {' '.join(str(error).split())}. Correct that line.") from None
    if not isinstance(values, dict):
        raise ClusterFileError(f"{path} has no keys. Write a cluster file with: rl4sys cluster init --help")
    return ClusterFile(path, _kind(values, path), values, text)


def section(values: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The mapping at a path of keys, or an empty one: files are read before they are checked."""
    for name in names:
        inner = values.get(name)
        values = inner if isinstance(inner, dict) else {}
    return values


def _kind(values: Mapping[str, Any], path: Path) -> ClusterKind:
    if str(values.get("apiVersion", "")).startswith("ray.io/"):
        return "kuberay"
    if "provider" in values or "cluster_name" in values:
        provider = section(values, "provider").get("type")
        if not isinstance(provider, str) or provider not in _PROVIDERS:
            raise ClusterFileError(
                f"{path}: provider.type is {provider!r}; expected gcp (for gce) or aws (for ec2). "
                "To use machines that run already, start Ray there and give its address: --on ray --address HOST:6379"
            )
        return _PROVIDERS[provider]
    if "run" in values or "resources" in values or "setup" in values:
        return "sky"
    raise ClusterFileError(
        f"{path} is no cluster file: it has neither 'provider' (Ray), 'apiVersion: ray.io/v1' (KubeRay), "
        "'run' (SkyPilot) nor #SBATCH lines (SLURM). Write one with: rl4sys cluster init --help"
    )
