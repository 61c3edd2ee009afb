"""Ray's cluster launcher, for Google Compute Engine and EC2."""

from __future__ import annotations

from dataclasses import dataclass

from rl4sys.clusters import head_scripts
from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.program_calls import ProgramCall
from rl4sys.clusters.submission import Submission


@dataclass(frozen=True, slots=True)
class RayCommands:
    """Ray's cluster launcher. Jobs are submitted on the head, through ssh: its dashboard is on loopback."""

    file: ClusterFile

    def exists(self) -> ProgramCall:
        """Ask for the address of the head, which only a running one has."""
        return ProgramCall(("ray", "get-head-ip", str(self.file.path)), "ask whether it runs already")

    def up(self) -> tuple[ProgramCall, ...]:
        """Start the head; workers follow as trials wait."""
        return (
            ProgramCall(("ray", "up", "--yes", "--disable-usage-stats", str(self.file.path)), "start the machines"),
        )

    def submit(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Copy the files, and start a Ray job."""
        calls = [self._exec(f"mkdir -p {head_scripts.WORK}", "make the working directory")]
        if submission.files is not None:
            # With a slash at the end, rsync copies the contents.
            copy = ("ray", "rsync-up", str(self.file.path), f"{submission.files}/", f"{head_scripts.WORK}/")
            calls.append(ProgramCall(copy, f"copy {submission.files}"))
        return (*calls, self._exec(head_scripts.submit(submission), "start the command"))

    def run(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a Ray job, and show its output until it ends."""
        return (*self.submit(submission), self._exec(head_scripts.follow(submission.id), "follow the command"))

    def is_running(self, submission: Submission) -> ProgramCall:
        """Ask whether a job runs."""
        return self._exec(head_scripts.is_running(submission.id), "ask whether it still runs")

    def status(self) -> tuple[ProgramCall, ...]:
        """Show nodes and jobs."""
        return (self._exec(f"ray status; {head_scripts.list_jobs()}", "show machines and jobs"),)

    def logs(self, id: str | None) -> tuple[ProgramCall, ...]:
        """Show the output of a job."""
        return (self._exec(head_scripts.logs(id), "show the output"),)

    def down(self) -> tuple[ProgramCall, ...]:
        """End the head and all workers."""
        return (ProgramCall(("ray", "down", "--yes", str(self.file.path)), "end the machines"),)

    def _exec(self, script: str, purpose: str) -> ProgramCall:
        return ProgramCall(("ray", "exec", str(self.file.path), script), purpose)
