"""Jobs of SLURM that start Ray on their nodes."""

from __future__ import annotations

import getpass
import shlex
from dataclasses import dataclass

from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.program_calls import ProgramCall
from rl4sys.clusters.submission import Submission


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """Jobs of SLURM, each with its own machines: there is nothing to start first."""

    file: ClusterFile

    def exists(self) -> None:
        """Not asked: starting twice is harmless here."""
        return

    def up(self) -> tuple[ProgramCall, ...]:
        """Nothing: a job starts its machines."""
        return ()

    def submit(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Queue a job."""
        return (ProgramCall(("sbatch", *self._rest(submission)), "queue the job"),)

    def run(self, submission: Submission) -> tuple[ProgramCall, ...]:
        """Queue a job, and wait until it ends; its output is in a file beside."""
        return (ProgramCall(("sbatch", "--wait", *self._rest(submission)), "queue the job and wait for it"),)

    def is_running(self, submission: Submission) -> None:
        """The queue is local: no connection can break."""
        return

    def status(self) -> tuple[ProgramCall, ...]:
        """Show the jobs of this file."""
        return (
            ProgramCall(("squeue", f"--user={getpass.getuser()}", f"--name={self.file.name}", "--long"), "show jobs"),
        )

    def logs(self, id: str | None) -> tuple[ProgramCall, ...]:
        """Show the output of a job."""
        pattern = f"{shlex.quote(self.file.name)}-{shlex.quote(id) if id else '*'}.out"
        return (ProgramCall(("bash", "-c", f'cat "$(ls -t {pattern} | head -n 1)"'), "show the output"),)

    def down(self) -> tuple[ProgramCall, ...]:
        """Cancel the jobs of this file."""
        cancel = ("scancel", f"--user={getpass.getuser()}", f"--name={self.file.name}")
        return (ProgramCall(cancel, "cancel the jobs"),)

    def _rest(self, submission: Submission) -> tuple[str, ...]:
        return (str(self.file.path), *submission.command)
