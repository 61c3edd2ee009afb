"""Writes the file of a new cluster from a template, with its token and its constraints."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from rl4sys.clusters.cluster_file import PLACEHOLDER, ClusterKind
from rl4sys.clusters.pinned_versions import (
    BOTO3,
    GOOGLE_CLIENT,
    UV,
    constraints,
    python_version,
    requirement,
    version_of,
)

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_VARIABLE = re.compile(r"@@(\w+)@@")
_MACHINES: Mapping[str, tuple[str, str]] = {
    "gce": ("n2-standard-2", "n2-standard-8"),
    "ec2": ("m6i.large", "m6i.2xlarge"),
}
"""By default the machines of head and workers: 2 and 8 virtual CPUs."""
_UBUNTU = "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


class NewFileError(ValueError):
    """A cluster file that cannot be written as asked."""


@dataclass(frozen=True, slots=True)
class NewCluster:
    """What a user says about a new cluster; the rest is left for the file."""

    kind: ClusterKind
    name: str = "rl4sys"
    workers: int = 2
    cpus: int = 8
    """Of each worker."""
    machine: str | None = None
    project: str | None = None
    region: str | None = None
    image: str | None = None
    """Of the container for kuberay, of the machine for ec2."""
    partition: str | None = None
    wheel: Path | None = None
    """Of RL4Sys, in place of its release."""


def write_cluster_files(cluster: NewCluster, output: Path, *, force: bool) -> tuple[Path, ...]:
    """Write the cluster file and what it refers to; refuses to overwrite a file without `force`.

    The token of an earlier file is kept: the machines that run have it.
    """
    _check(cluster)
    beside = output.absolute()
    token = beside.with_suffix(".token")
    pinned = beside.with_name(f"{beside.stem}-constraints.txt")
    has_token = cluster.kind != "kuberay"
    has_pins = cluster.kind != "slurm"
    text = render(cluster, token, pinned)
    files = [output, *([pinned] if has_pins else [])]
    for path in [] if force else files:
        if path.exists():
            raise NewFileError(f"{path} exists. Give another --output, or --force to overwrite it.")
    if not beside.parent.is_dir():
        raise NewFileError(f"{beside.parent} is no directory. Make it, or give another --output.")
    output.write_text(text, "utf-8")
    if has_pins:
        pinned.write_text(constraints(), "utf-8")
    if has_token:
        _write_token(token)
    return (*files, *([token] if has_token else []))


def render(cluster: NewCluster, token: Path, pinned: Path) -> str:
    """The text of the cluster file."""
    template = resources.files("rl4sys.clusters").joinpath("templates", _template_name(cluster.kind))
    values = _values(cluster, token, pinned)
    return _VARIABLE.sub(lambda match: values[match[1]], template.read_text("utf-8"))


def default_output(kind: ClusterKind) -> Path:
    """The file that is written if none is named."""
    return Path(f"cluster-{_template_name(kind)}")


def _template_name(kind: ClusterKind) -> str:
    return "slurm.sh" if kind == "slurm" else f"{kind}.yaml"


def _values(cluster: NewCluster, token: Path, pinned: Path) -> dict[str, str]:
    region = cluster.region or {"gce": "us-central1", "ec2": "us-west-2"}.get(cluster.kind, "")
    project = cluster.project or f"{PLACEHOLDER}-project"
    head, machine = _MACHINES.get(cluster.kind, ("", ""))
    values = {
        "name": cluster.name,
        "workers": str(cluster.workers),
        "nodes": str(cluster.workers if cluster.kind == "slurm" else cluster.workers + 1),
        "cpus": str(cluster.cpus),
        "project": project,
        "region": region,
        "zone": f"{region}-a",
        "head_machine": head,
        "machine": cluster.machine or machine,
        "service_account": f"rl4sys-worker@{project}.iam.gserviceaccount.com",
        "profile": "rl4sys-head",
        "image": cluster.image or (_UBUNTU if cluster.kind == "ec2" else f"{PLACEHOLDER}-registry/rl4sys"),
        "partition": cluster.partition or f"{PLACEHOLDER}-partition",
        "time": "08:00:00",
        "environment": str(Path(sys.executable).parent),
        "token_file": str(token),
        "constraints_file": str(pinned),
        "constraints_name": pinned.name,
        "wheel_mount": "",
        "rl4sys": requirement(),
        "uv": UV,
        "python": python_version(),
        "google": version_of("google-api-python-client", GOOGLE_CLIENT),
        "boto3": version_of("boto3", BOTO3),
    }
    if cluster.kind != "slurm":
        values |= {"ray": version_of("ray"), "torch": version_of("torch")}
    if cluster.wheel is not None:
        # Machines install this file in place of a release.
        target = f"~/{cluster.wheel.name}"
        values["wheel_mount"] = f'\n  "{target}": "{cluster.wheel.absolute()}"'
        values["rl4sys"] = f"rl4sys[train,ray] @ file:///home/ubuntu/{cluster.wheel.name}"
    return values


def _check(cluster: NewCluster) -> None:
    if not _NAME.fullmatch(cluster.name):
        raise NewFileError(
            f"--name {cluster.name}: clouds accept lower-case letters, digits and hyphens, at most 40, a letter first."
        )
    if cluster.wheel is not None and not (cluster.wheel.is_file() and cluster.wheel.suffix == ".whl"):
        raise NewFileError(f"--wheel {cluster.wheel}: there is no such wheel. Build one with: make wheel")
    if cluster.wheel is not None and cluster.kind not in ("gce", "ec2"):
        raise NewFileError(f"--wheel is for gce and ec2; for {cluster.kind}, change how the file installs RL4Sys.")
    taken = {"gce": "--project", "kuberay": "--image", "slurm": "--partition"}
    for option, value, kinds in (
        ("--project", cluster.project, ("gce",)),
        ("--region", cluster.region, ("gce", "ec2")),
        ("--machine", cluster.machine, ("gce", "ec2")),
        ("--image", cluster.image, ("kuberay", "ec2")),
        ("--partition", cluster.partition, ("slurm",)),
    ):
        if value is not None and cluster.kind not in kinds:
            advice = f"; {cluster.kind} has {taken[cluster.kind]}" if cluster.kind in taken else ""
            raise NewFileError(f"{option} is for {' and '.join(kinds)}, not for {cluster.kind}{advice}.")


def _write_token(path: Path) -> None:
    """Write a random token that only the user may read, unless there is one."""
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
