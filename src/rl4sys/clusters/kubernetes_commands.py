"""Ray on Kubernetes, with KubeRay."""

from __future__ import annotations

from dataclasses import dataclass

from rl4sys.clusters import head_scripts
from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.program_calls import ProgramCall
from rl4sys.clusters.submission import Submission


@dataclass(frozen=True, slots=True)
class KubernetesCommands:
    """A RayCluster of KubeRay, through kubectl."""

    file: ClusterFile

    def exists(self) -> ProgramCall:
        """Ask for the RayCluster."""
        return ProgramCall(("kubectl", "get", f"raycluster/{self.file.name}"), "ask whether it runs already")

    def up(self) -> tuple[ProgramCall, ...]:
        """Create the RayCluster, and wait for its head."""
        wait = ("kubectl", "wait", "--for=condition=HeadPodReady", "--timeout=900s", f"raycluster/{self.file.name}")
        return (
            ProgramCall(("kubectl", "apply", "-f", str(self.file.path)), "create the cluster"),
            ProgramCall(wait, "wait for the head"),
        )

    def submit(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Copy the files, and start a Ray job."""
        calls = [self._exec(f"mkdir -p {head_scripts.WORK}", "make the working directory")]
        if submission.files is not None:
            packing = ("tar", "cf", "-", "-C", str(submission.files), "--exclude=runs", "--exclude=.git", ".")
            unpack = self._exec(f"tar xf - -C {head_scripts.WORK}", f"copy {submission.files}", "-i")
            calls.append(ProgramCall(unpack.argv, unpack.purpose, packing))
        return (*calls, self._exec(head_scripts.submit(submission), "start the command"))

    def run(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a Ray job, and show its output until it ends."""
        return (*self.submit(submission), self._exec(head_scripts.follow(submission.id), "follow the command"))

    def is_running(self, submission: Submission) -> ProgramCall:
        """Ask whether a job runs."""
        return self._exec(head_scripts.is_running(submission.id), "ask whether it still runs")

    def status(self) -> tuple[ProgramCall, ...]:
        """Show pods and jobs."""
        return (
            ProgramCall(("kubectl", "get", f"raycluster/{self.file.name}"), "show the cluster"),
            ProgramCall(("kubectl", "get", "pods", "-l", f"ray.io/cluster={self.file.name}"), "show its pods"),
            self._exec(head_scripts.list_jobs(), "show jobs"),
        )

    def logs(self, id: str | None) -> tuple[ProgramCall, ...]:
        """Show the output of a job."""
        return (self._exec(head_scripts.logs(id), "show the output"),)

    def down(self) -> tuple[ProgramCall, ...]:
        """Delete the RayCluster with its pods."""
        delete = ("kubectl", "delete", "--ignore-not-found", "--wait=true", "-f", str(self.file.path))
        return (ProgramCall(delete, "delete the cluster"),)

    def _exec(self, script: str, purpose: str, *options: str) -> ProgramCall:
        head = f"service/{self.file.name}-head-svc"
        return ProgramCall(("kubectl", "exec", *options, head, "-c", "ray-head", "--", "bash", "-c", script), purpose)
