"""The commands of Ray, Kubernetes, SkyPilot and SLURM that use a cluster file."""

from __future__ import annotations

from typing import Protocol

from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.kubernetes_commands import KubernetesCommands
from rl4sys.clusters.program_calls import ProgramCall
from rl4sys.clusters.ray_commands import RayCommands
from rl4sys.clusters.sky_commands import SkyCommands
from rl4sys.clusters.slurm_commands import SlurmCommands
from rl4sys.clusters.submission import Submission


class ClusterCommands(Protocol):
    """What can be done with a cluster, as calls."""

    def exists(self) -> ProgramCall | None:
        """Succeeds if the cluster runs already, so that a failure to start it does not end it. None: not known."""

    def up(self) -> tuple[ProgramCall, ...]:
        """Start the machines."""

    def submit(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a command, and return."""

    def run(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a command and, in the last call, show its output until it ends; that call fails if the command did."""

    def is_running(self, submission: Submission) -> ProgramCall | None:
        """Prints `still running` while a command runs: asked when the last call of `run` failed. None: it is not."""

    def status(self) -> tuple[ProgramCall, ...]:
        """Show machines and jobs."""

    def logs(self, id: str | None) -> tuple[ProgramCall, ...]:
        """Show the output of a command, by default of the latest."""

    def down(self) -> tuple[ProgramCall, ...]:
        """End all machines of the cluster."""


def commands_for(file: ClusterFile) -> ClusterCommands:
    """The commands for a file."""
    match file.kind:
        case "gce" | "ec2":
            return RayCommands(file)
        case "kuberay":
            return KubernetesCommands(file)
        case "sky":
            return SkyCommands(file)
        case "slurm":
            return SlurmCommands(file)
