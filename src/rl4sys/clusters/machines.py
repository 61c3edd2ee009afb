"""The machines that a cluster file starts, for the user to confirm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rl4sys.clusters.cluster_file import ClusterFile, section
from rl4sys.clusters.ray_file_checks import is_spot


@dataclass(frozen=True, slots=True)
class MachineGroup:
    """Machines of one type."""

    role: str
    count: int
    """At most."""
    machine: str
    price_class: str
    """`on demand`, `spot`, or what else is charged."""

    def __str__(self) -> str:
        most = "up to " if self.role != "head" else ""
        return f"{self.role}: {most}{self.count} × {self.machine}, {self.price_class}"


def machines_of(file: ClusterFile) -> tuple[MachineGroup, ...]:
    """The machines of a checked file."""
    match file.kind:
        case "gce" | "ec2":
            return _of_ray(file)
        case "kuberay":
            return _of_kuberay(file)
        case "sky":
            return _of_sky(file)
        case "slurm":
            nodes, cpus = int(file.values.get("nodes", 1)), file.values.get("cpus-per-task", "1")
            return (MachineGroup("nodes", nodes, f"{cpus} CPUs each", "charged by your SLURM account"),)


def _of_ray(file: ClusterFile) -> tuple[MachineGroup, ...]:
    head, most = file.values["head_node_type"], file.values["max_workers"]
    key = "machineType" if file.kind == "gce" else "InstanceType"

    def group(name: str, node: dict[str, Any]) -> MachineGroup:
        config = section(node, "node_config")
        count = 1 if name == head else min(node.get("max_workers", most), most)
        role = "head" if name == head else name
        return MachineGroup(role, count, str(config[key]), "spot" if is_spot(config) else "on demand")

    return tuple(group(name, node) for name, node in section(file.values, "available_node_types").items())


def _of_kuberay(file: ClusterFile) -> tuple[MachineGroup, ...]:
    spec = section(file.values, "spec")

    def group(role: str, count: int, inner: Any) -> MachineGroup:
        pod = section(inner, "template", "spec")
        container = (pod.get("containers") or [{}])[0]
        cpus = section(container, "resources", "requests").get("cpu", "any number of")
        return MachineGroup(role, count, f"pod with {cpus} CPUs", "charged by your Kubernetes cluster")

    workers = (group(one["groupName"], one["maxReplicas"], one) for one in spec.get("workerGroupSpecs") or ())
    return (group("head", 1, section(spec, "headGroupSpec")), *workers)


def _of_sky(file: ClusterFile) -> tuple[MachineGroup, ...]:
    resources = section(file.values, "resources")
    price = "spot" if resources.get("use_spot") else "on demand"
    wanted = ", ".join(f"{key} {resources[key]}" for key in ("infra", "accelerators", "cpus") if key in resources)
    return (MachineGroup("nodes", file.values.get("num_nodes", 1), wanted or "any machine", price),)
