"""SLURM's own commands, with their answers as records."""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rl4sys.clusters.program_calls import find_program

ENDED = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE")
)
"""States from which a job does not return by itself."""
UNKNOWN = "UNKNOWN"
"""The state of a job that SLURM has forgotten."""
_SECONDS = 60.0


class SlurmRefused(RuntimeError):
    """SLURM did not accept a job."""


class SlurmQueue:
    """The jobs of this user. All three programs must exist, so that a job that is started can also be ended."""

    def __init__(self) -> None:
        for program in ("sbatch", "squeue", "scancel"):
            find_program(program)

    def submit(self, options: Sequence[str], script: Path) -> str:
        """Queue a job; returns its number."""
        done = _call(["sbatch", "--parsable", *options, str(script)])
        if done.returncode != 0:
            said = " ".join(done.stderr.split()).removeprefix("sbatch: error: ") or f"exit code {done.returncode}"
            raise SlurmRefused(
                f"sbatch refused the job: {said}. Partition, account and time limit are taken from the variables "
                "SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_TIMELIMIT."
            )
        # With several clusters it prints NUMBER;CLUSTER.
        return done.stdout.strip().partition(";")[0]

    def states(self) -> Mapping[str, str] | None:
        """The states of this user's jobs by number, ended ones for a while; None if SLURM does not answer."""
        user = f"--user={getpass.getuser()}"
        done = _call(["squeue", "--noheader", user, "--states=all", "--format=%i|%T"])
        if done.returncode != 0:
            return None
        return dict(line.strip().split("|", 1) for line in done.stdout.splitlines() if "|" in line)

    def final_state(self, job: str) -> str:
        """The state of a job that `squeue` no longer lists, from the accounting if there is one."""
        try:
            done = _call(["sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={job}", "--format=State"])
        except FileNotFoundError:
            return UNKNOWN
        words = done.stdout.split() if done.returncode == 0 else []
        return words[0] if words else UNKNOWN

    def ask_to_stop(self, jobs: Iterable[str]) -> None:
        """Send SIGTERM to the jobs that run, and cancel those that wait."""
        numbers = list(jobs)
        # Without --batch the signal goes to job steps only, and not to the script.
        _call(["scancel", "--quiet", "--batch", "--signal=TERM", *numbers])
        _call(["scancel", "--quiet", "--state=PENDING", *numbers])

    def cancel(self, jobs: Iterable[str]) -> None:
        """End jobs at once."""
        _call(["scancel", "--quiet", *jobs])


def _call(argv: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no answer within {_SECONDS:.0f} s")
