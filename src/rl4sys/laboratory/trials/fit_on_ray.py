"""Checks that a Ray cluster can run what is asked for, before anything is started."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rl4sys.collection.cluster_address import ClusterUnfit
from rl4sys.cores import usable_cores
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.trials.trial_host import can_see, describe_machine
from rl4sys.storage import is_url, open_storage

_NODE_SECONDS = 60.0
"""Seconds that a node has to say what it is."""


def nodes_with_room(where: WhereSection, cpus: int, ranks: int = 1) -> list[dict[str, Any]]:
    """The nodes of the cluster, if they have room for runs of so many ranks, each with so many cores."""
    nodes: list[dict[str, Any]] = [node for node in ray.nodes() if node["Alive"]]
    if not where.autoscaling:
        _require_room([node["Resources"] for node in nodes], where, cpus, ranks)
    return nodes


def require_fit(where: WhereSection, nodes: list[dict[str, Any]]) -> None:
    """Ask all nodes whether runs would be the same there, and whether they see the storage."""
    machines = _describe_all(nodes)
    here = json.loads(describe_machine())
    for machine in machines:
        for name in ("rl4sys", "python", "torch"):
            if machine[name] != here[name]:
                raise ClusterUnfit(
                    f"{machine['host']} has {name} {machine[name]}, this machine has {here[name]}: runs would differ. "
                    "Install the same version there."
                )
    _require_storage(where, nodes, {machine["host"] for machine in machines})


def require_room_here(where: WhereSection, cpus: int, ranks: int) -> None:
    """Refuse what this machine has no room for, before Ray is started on it, which takes seconds."""
    here = {"CPU": float(len(usable_cores())), "GPU": float(torch.cuda.device_count())}
    _require_room([here], where, cpus, ranks)


def _require_room(nodes: Sequence[Mapping[str, float]], where: WhereSection, cpus: int, ranks: int) -> None:
    """Some node must have what a run asks for, and all of them together what its ranks do."""
    for name, asked in (("CPU", float(cpus)), ("GPU", where.gpus)):
        most = max((float(node.get(name, 0)) for node in nodes), default=0.0)
        if asked > most:
            raise ClusterUnfit(
                f"A run asks for {asked:g} {name}, but no node of the cluster has more than {most:g}. Ask for "
                f"fewer with --{name.lower()}s, or set where.autoscaling=true if the cluster starts larger nodes."
            )
    if (room := sum(_slots(node, cpus, where.gpus) for node in nodes)) < ranks:
        gpus = f" and {where.gpus:g} GPU" if where.gpus else ""
        raise ClusterUnfit(
            f"A run has {ranks} ranks with {cpus} CPU{gpus} each, but the cluster has room for {room}. Use fewer "
            f"ranks, or set where.autoscaling=true if the cluster starts more nodes."
        )


def slots(node: dict[str, Any], cpus: int, gpus: float) -> int:
    """How many processes fit on a node."""
    return _slots(node["Resources"], cpus, gpus)


def _slots(resources: Mapping[str, float], cpus: int, gpus: float) -> int:
    most = int(resources.get("CPU", 0)) // cpus
    return most if not gpus else min(most, int(resources.get("GPU", 0) / gpus))


def _describe_all(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each node says about itself; all are asked at once."""
    replies = [_on(node, describe_machine).remote() for node in nodes]
    found = []
    for node, reply in zip(nodes, replies, strict=True):
        try:
            found.append(json.loads(ray.get(reply, timeout=_NODE_SECONDS)))
        except (RayError, TimeoutError) as error:
            line = str(error).strip().splitlines()[-1]
            raise ClusterUnfit(
                f"{node['NodeManagerHostname']} cannot run RL4Sys: {line} Install it there with: "
                f"pip install 'rl4sys[train,ray]'"
            ) from error
    return found


def _on(node: dict[str, Any], function: Any) -> Any:
    """A function as a Ray task that runs on one node."""
    strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(function)


def _require_storage(where: WhereSection, nodes: list[dict[str, Any]], hosts: set[str]) -> None:
    """Storage must be given if there are several machines, and usable from all of them."""
    if where.storage is None:
        if hosts | {platform.node()} != {platform.node()}:
            raise ClusterUnfit(
                f"The cluster has other machines ({', '.join(sorted(hosts))}), which do not see the runs here. Give "
                "--storage: a directory that all machines see, or a URL such as s3://bucket/runs"
            )
    elif is_url(where.storage):
        open_storage(where.storage).require_writable()
    else:
        mark = Path(where.storage).resolve() / f".seen-{os.getpid()}"
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        except OSError as error:
            raise ClusterUnfit(f"--storage {where.storage} cannot be written to: {error.strerror}") from error
        try:
            for node in nodes:
                if not ray.get(_on(node, can_see).remote(str(mark)), timeout=_NODE_SECONDS):
                    raise ClusterUnfit(
                        f"{node['NodeManagerHostname']} does not see {mark.parent}; give --storage a directory that "
                        "all machines see, or a URL such as s3://bucket/runs"
                    )
        finally:
            mark.unlink()
