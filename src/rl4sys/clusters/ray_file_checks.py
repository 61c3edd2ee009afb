"""Checks of Ray's cluster files for Google Compute Engine and EC2: Ray's schema, and what it lets pass."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rl4sys.clusters.cluster_file import ClusterFile, section
from rl4sys.clusters.file_finding import (
    FileFinding,
    find_missing_token,
    find_public_dashboard,
    find_unpinned,
    find_wrong_number,
)

_COMMANDS = ("initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands")
_START = ("head_start_ray_commands", "worker_start_ray_commands")
_TOKEN = ".ray/auth_token"
_MACHINE = {"gce": "machineType", "ec2": "InstanceType"}


def find_in_ray_file(file: ClusterFile) -> Iterator[FileFinding]:
    """Everything that is wrong with a cluster file of Ray."""
    yield from _find_in_schema(file.values)
    yield from _find_in_provider(file)
    yield from _find_in_counts(file.values)
    yield from _find_in_node_types(file)
    yield from _find_in_commands(file.values)


def _find_in_schema(values: Mapping[str, Any]) -> Iterator[FileFinding]:
    """Differences from Ray's own schema, if Ray is installed; nothing of it is imported."""
    if "min_workers" in values:
        yield FileFinding(
            "min_workers",
            "Ray no longer has it at the top level",
            "set it for a node type: available_node_types.worker.min_workers",
        )
    ray = importlib.util.find_spec("ray")
    if ray is None or ray.origin is None or importlib.util.find_spec("jsonschema") is None:
        yield FileFinding(
            "(schema)",
            "ray is not installed here, so its schema is not checked",
            "pip install 'rl4sys[ray]'",
            "warning",
        )
        return
    # Imported here: it comes with ray.
    import jsonschema

    schema = json.loads((Path(ray.origin).parent / "autoscaler" / "ray-schema.json").read_text("utf-8"))
    rest = {key: value for key, value in values.items() if key != "min_workers"}
    for error in jsonschema.Draft7Validator(schema).iter_errors(rest):
        key = ".".join(map(str, error.absolute_path)) or "(top level)"
        # Project and region have sentences of their own.
        if key not in ("provider.project_id", "provider.region"):
            yield FileFinding(key, error.message, "correct it as Ray's schema demands")


def _find_in_provider(file: ClusterFile) -> Iterator[FileFinding]:
    provider = section(file.values, "provider")
    needed = {"gce": ("project_id", "region", "availability_zone"), "ec2": ("region",)}[file.kind]
    for name in needed:
        value = provider.get(name)
        if not isinstance(value, str) or not value:
            what = "it is missing" if value is None else f"it is {value!r}, not a name"
            yield FileFinding(
                f"provider.{name}", what, f"write the {name.replace('_', ' ')} that is to be charged or used"
            )
    zone, region = provider.get("availability_zone"), provider.get("region")
    if isinstance(zone, str) and isinstance(region, str) and region and not zone.startswith(region):
        yield FileFinding(
            "provider.availability_zone", f"{zone} is not in {region}", f"write a zone such as {region}-a"
        )
    if file.kind == "ec2" and provider.get("cache_stopped_nodes", True) is not False:
        yield FileFinding(
            "provider.cache_stopped_nodes",
            "machines are stopped instead of terminated, and their disks still cost",
            "set it to false",
            "warning",
        )


def _find_in_counts(values: Mapping[str, Any]) -> Iterator[FileFinding]:
    yield from find_wrong_number("max_workers", values.get("max_workers"), 0)
    for name, node in section(values, "available_node_types").items():
        for count in ("min_workers", "max_workers"):
            if isinstance(node, dict) and count in node:
                yield from find_wrong_number(f"available_node_types.{name}.{count}", node[count], 0)
    most = values.get("max_workers")
    wanted = [
        node["min_workers"]
        for node in section(values, "available_node_types").values()
        if isinstance(node, dict) and isinstance(node.get("min_workers"), int)
    ]
    if isinstance(most, int) and sum(wanted) > most:
        yield FileFinding(
            "max_workers",
            f"it is {most}, but min_workers of the node types are {sum(wanted)}",
            "raise it or lower those",
        )


def _find_in_node_types(file: ClusterFile) -> Iterator[FileFinding]:
    types = section(file.values, "available_node_types")
    head = file.values.get("head_node_type")
    if not types:
        yield FileFinding("available_node_types", "it is missing", "describe at least a head and a worker")
    if head not in types:
        known = ", ".join(types) or "none"
        yield FileFinding("head_node_type", f"{head!r} is not among available_node_types ({known})", "name one of them")
    machine = _MACHINE[file.kind]
    for name, node in types.items():
        config = section(node, "node_config") if isinstance(node, dict) else {}
        key = f"available_node_types.{name}.node_config"
        if not isinstance(config.get(machine), str):
            other = next((word for word in _MACHINE.values() if word != machine and word in config), None)
            hint = f"; {other} is of another provider" if other else ""
            yield FileFinding(f"{key}.{machine}", f"it is missing{hint}", "name a machine type")
        if name == head:
            yield from _find_in_head(file, key, config)


def _find_in_head(file: ClusterFile, key: str, config: Mapping[str, Any]) -> Iterator[FileFinding]:
    if is_spot(config):
        yield FileFinding(
            key, "the head is on spot; if it is reclaimed, the whole job ends", "use on-demand for the head", "warning"
        )
    if file.kind == "ec2" and "IamInstanceProfile" not in config:
        yield FileFinding(
            f"{key}.IamInstanceProfile",
            "without a profile Ray makes one with full access to EC2 and S3",
            "name one with the policy of docs/clusters.md",
            "warning",
        )


def _find_in_commands(values: Mapping[str, Any]) -> Iterator[FileFinding]:
    for key in _START:
        script = commands_in(values, key)
        if not script:
            yield FileFinding(
                key, "it is missing, and Ray's own opens the dashboard to the network", "copy it from `init`"
            )
            continue
        yield from find_public_dashboard(key, script)
    starting = "\n".join(commands_in(values, key) for key in (*_COMMANDS, *_START))
    mounts = section(values, "file_mounts")
    token = next((str(local) for remote, local in mounts.items() if str(remote).endswith(_TOKEN)), None)
    yield from find_missing_token("file_mounts", token, is_enabled="RAY_AUTH_MODE=token" in starting)
    if token is None:
        yield FileFinding("file_mounts", "no token is given to the machines", f'mount one at "~/{_TOKEN}"')
    excluded = values.get("rsync_exclude")
    for remote, local in mounts.items():
        for pattern in excluded if isinstance(excluded, list) else ():
            if fnmatch(Path(str(local)).name, str(pattern)):
                yield FileFinding(
                    f"file_mounts.{remote}", f"rsync_exclude ({pattern}) leaves it out", "remove the pattern"
                )
        if str(local) != token and not Path(str(local)).expanduser().exists():
            yield FileFinding(
                f"file_mounts.{remote}", f"there is no {local} here", "correct the path, or remove the mount"
            )
    if not commands_in(values, "setup_commands"):
        yield FileFinding(
            "setup_commands", "it is missing, and Ray installs a nightly build of itself", "copy it from `init`"
        )
    for key in _COMMANDS:
        yield from find_unpinned(key, commands_in(values, key))


def commands_in(values: Mapping[str, Any], key: str) -> str:
    """The commands under a key as one script."""
    found = values.get(key)
    return "\n".join(map(str, found)) if isinstance(found, list) else ""


def is_spot(config: Mapping[str, Any]) -> bool:
    """Whether machines of this type may be reclaimed at any time."""
    scheduling = config.get("scheduling")
    options = scheduling if isinstance(scheduling, list) else [scheduling]
    google = any(
        isinstance(option, dict) and (option.get("preemptible") or option.get("provisioningModel") == "SPOT")
        for option in options
    )
    return google or section(config, "InstanceMarketOptions").get("MarketType") == "spot"
