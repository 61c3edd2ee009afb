"""Clusters of SkyPilot."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.program_calls import ProgramCall
from rl4sys.clusters.submission import Submission


@dataclass(frozen=True, slots=True)
class SkyCommands:
    """A cluster of SkyPilot."""

    file: ClusterFile

    def exists(self) -> None:
        """Not asked: starting twice is harmless here."""
        return

    def up(self) -> tuple[ProgramCall, ...]:
        """Start the machines and Ray on them."""
        launch = ("sky", "launch", "--yes", "--cluster", self.file.name, str(self.file.path))
        return (ProgramCall(launch, "start the machines"),)

    def submit(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a command, and return."""
        return (*self._copy(submission), self._exec(submission, "--detach-run"))

    def run(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Start a command, and show its output until it ends."""
        return (*self._copy(submission), self._exec(submission))

    def is_running(self, submission: Submission) -> None:
        """SkyPilot reconnects by itself."""
        return

    def status(self) -> tuple[ProgramCall, ...]:
        """Show machines and jobs."""
        name = self.file.name
        return (ProgramCall(("sky", "status", name), "show machines"), ProgramCall(("sky", "queue", name), "show jobs"))

    def logs(self, id: str | None) -> tuple[ProgramCall, ...]:
        """Show the output of a job, by its number."""
        return (ProgramCall(("sky", "logs", self.file.name, *([id] if id else [])), "show the output"),)

    def down(self) -> tuple[ProgramCall, ...]:
        """End the machines."""
        return (ProgramCall(("sky", "down", "--yes", self.file.name), "end the machines"),)

    def _copy(self, submission: Submission) -> tuple[ProgramCall, ...]:
        if submission.files is None:
            return ()
        # SkyPilot writes an entry for the cluster into the configuration of ssh.
        copy = (
            "rsync",
            "-a",
            "--exclude=runs",
            "--exclude=.git",
            f"{submission.files}/",
            f"{self.file.name}:rl4sys-work/",
        )
        return (ProgramCall(copy, f"copy {submission.files}"),)

    def _exec(self, submission: Submission, *options: str) -> ProgramCall:
        command = f"RL4SYS_COMMAND={shlex.join(submission.command)}"
        argv = ("sky", "exec", *options, "--env", command, self.file.name, str(self.file.path))
        return ProgramCall(argv, "start the command")
