"""Offline checks of cluster files of every kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rl4sys.clusters.cluster_file import ClusterFile, ClusterFileError, ClusterKind, section
from rl4sys.clusters.file_finding import (
    FileFinding,
    find_missing_token,
    find_placeholders,
    find_public_dashboard,
    find_unpinned,
    find_wrong_number,
)
from rl4sys.clusters.ray_file_checks import find_in_ray_file


def check_cluster_file(file: ClusterFile, wanted: ClusterKind | None = None) -> tuple[FileFinding, ...]:
    """What is wrong with a file, errors first."""
    found = [*_find_other_kind(file, wanted), *find_placeholders(file.values)]
    match file.kind:
        case "gce" | "ec2":
            found += find_in_ray_file(file)
        case "kuberay":
            found += _find_in_kuberay_file(file.values)
        case "sky":
            found += _find_in_sky_file(file.values)
        case "slurm":
            found += _find_in_slurm_file(file)
    placeholders = {finding.key for finding in found if "placeholder" in finding.problem}
    # A placeholder is reported once.
    unique = dict.fromkeys(
        finding for finding in found if finding.key not in placeholders or "placeholder" in finding.problem
    )
    return tuple(sorted(unique, key=lambda finding: finding.severity))


def require_usable(file: ClusterFile) -> tuple[FileFinding, ...]:
    """Refuse a file with errors; returns the warnings."""
    found = check_cluster_file(file)
    errors = [finding for finding in found if finding.severity == "error"]
    if errors:
        more = f" ({len(errors) - 1} more: rl4sys cluster check {file.path})" if len(errors) > 1 else ""
        raise ClusterFileError(f"{file.path}: {errors[0]}{more} Nothing was started.")
    return found


def _find_other_kind(file: ClusterFile, wanted: ClusterKind | None) -> Iterator[FileFinding]:
    if wanted is not None and file.kind != wanted:
        yield FileFinding(
            "(file)",
            f"this is a file for {file.kind}, not for {wanted}",
            f"write one with: rl4sys cluster init {wanted}",
        )


def _find_in_kuberay_file(values: Mapping[str, Any]) -> Iterator[FileFinding]:
    if values.get("kind") != "RayCluster":
        yield FileFinding("kind", f"it is {values.get('kind')!r}", "write RayCluster; `submit` starts jobs on it")
        return
    if not section(values, "metadata").get("name"):
        yield FileFinding("metadata.name", "it is missing", "name the cluster")
    spec = section(values, "spec")
    if not isinstance(spec.get("rayVersion"), str):
        yield FileFinding("spec.rayVersion", f"it is {spec.get('rayVersion')!r}", "write the version of Ray, in quotes")
    mode = section(spec, "authOptions").get("mode")
    yield from find_missing_token("spec.authOptions", None, is_enabled=mode == "token")
    head = section(spec, "headGroupSpec")
    host = section(head, "rayStartParams").get("dashboard-host")
    yield from find_public_dashboard("spec.headGroupSpec.rayStartParams", f"--dashboard-host={host or '0.0.0.0'}")
    if head.get("serviceType", "ClusterIP") != "ClusterIP":
        yield FileFinding(
            "spec.headGroupSpec.serviceType", f"{head['serviceType']} opens the head to the network", "write ClusterIP"
        )
    yield from _find_in_image("spec.headGroupSpec", head)
    groups = spec.get("workerGroupSpecs")
    for number, group in enumerate(groups if isinstance(groups, list) else []):
        key = f"spec.workerGroupSpecs.{number}"
        group = group if isinstance(group, dict) else {}
        for count in ("minReplicas", "maxReplicas"):
            yield from find_wrong_number(f"{key}.{count}", group.get(count), 0)
        yield from _find_in_image(key, group)


def _find_in_image(key: str, group: Mapping[str, Any]) -> Iterator[FileFinding]:
    """Images whose contents may change between two pods."""
    containers = section(group, "template", "spec").get("containers")
    for container in containers if isinstance(containers, list) else []:
        image = str(container.get("image", "")) if isinstance(container, dict) else ""
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield FileFinding(f"{key}.image", f"'{image}' has no exact version", "add a tag or a digest", "warning")


def _find_in_sky_file(values: Mapping[str, Any]) -> Iterator[FileFinding]:
    if not values.get("name"):
        yield FileFinding("name", "it is missing", "name the cluster")
    if "num_nodes" in values:
        yield from find_wrong_number("num_nodes", values["num_nodes"], 1)
    run, setup = str(values.get("run", "")), str(values.get("setup", ""))
    if "RL4SYS_COMMAND" not in run:
        yield FileFinding("run", "it does not run $RL4SYS_COMMAND, which `submit` sets", "copy `run` from `init`")
    mode = section(values, "envs").get("RAY_AUTH_MODE")
    mounts = section(values, "file_mounts")
    token = next((str(local) for remote, local in mounts.items() if str(remote).endswith("auth_token")), None)
    yield from find_missing_token("envs", token, is_enabled=mode == "token" or "RAY_AUTH_MODE=token" in run)
    yield from find_public_dashboard("run", run)
    yield from find_unpinned("setup", setup)
    resources = section(values, "resources")
    if not resources.get("autostop"):
        yield FileFinding(
            "resources.autostop",
            "machines without work run on and cost",
            "set {idle_minutes: 15, down: true}",
            "warning",
        )


def _find_in_slurm_file(file: ClusterFile) -> Iterator[FileFinding]:
    directives = file.values
    if not file.text.startswith("#!"):
        yield FileFinding("(first line)", "it does not name an interpreter", "begin with #!/bin/bash")
    if not str(directives.get("nodes", "1")).isdecimal():
        yield FileFinding("--nodes", f"it is {directives['nodes']!r}, not a number", "write how many nodes to use")
    if '"$@"' not in file.text:
        yield FileFinding("(script)", 'it does not run "$@", the command that `submit` gives', "copy it from `init`")
    if any(line.strip().startswith("ray stop") for line in file.text.splitlines()):
        yield FileFinding(
            "(script)", "`ray stop` ends every Ray of yours on a machine", "remove it; SLURM ends what the job started"
        )
    for name, problem, advice in (
        ("time", "the job has no time limit of its own", "write #SBATCH --time=08:00:00"),
        ("requeue", "a preempted job does not start again", "write #SBATCH --requeue"),
        ("signal", "runs are not warned before the time limit", "write #SBATCH --signal=B:TERM@120"),
    ):
        if name not in directives:
            yield FileFinding(f"--{name}", problem, advice, "warning")
    if "ray start" in file.text:
        token = next(
            (line.partition("=")[2] for line in file.text.splitlines() if "RAY_AUTH_TOKEN_PATH=" in line), None
        )
        yield from find_missing_token("(script)", token, is_enabled="RAY_AUTH_MODE=token" in file.text)
        yield from find_public_dashboard("(script)", file.text)
    environment = next((line for line in file.text.splitlines() if line.startswith("export PATH=/")), None)
    if environment is not None and not Path(environment.partition("=")[2].partition(":")[0]).is_dir():
        yield FileFinding(
            "(script)", f"{environment} names no directory here", "give the environment with RL4Sys", "warning"
        )
