"""What users do with a cluster: start it, run commands on it, end it. Machines never outlive a failure unnoticed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rl4sys.clusters.cluster_commands import ClusterCommands, commands_for
from rl4sys.clusters.cluster_file import ClusterFile
from rl4sys.clusters.program_calls import CallRunner, ProcessRunner, ProgramCall
from rl4sys.clusters.submission import Submission

_ATTEMPTS = 3
"""How often machines are asked to end."""
_RECONNECT_SECONDS = 10.0


class ClusterFailed(RuntimeError):
    """A command of a cluster failed."""


class MachinesMayRun(RuntimeError):
    """Machines could not be ended, and may cost."""


class CommandFailed(RuntimeError):
    """The command that ran on the cluster failed; the cluster did not."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of a checked file."""

    file: ClusterFile
    say: Callable[[str], None]
    runner: CallRunner = field(default_factory=ProcessRunner)
    sleep: Callable[[float], None] = time.sleep

    @property
    def commands(self) -> ClusterCommands:
        """The commands of its kind."""
        return commands_for(self.file)

    def up(self) -> None:
        """Start the machines; if that fails or is interrupted, end those that started."""
        known = self.commands.exists()
        if known is not None and self.runner.succeeds(known):
            raise ClusterFailed(
                f"The cluster '{self.file.name}' runs already. Use it with `rl4sys cluster submit {self.file.path}`, "
                f"or end it with `rl4sys cluster down {self.file.path}`."
            )
        try:
            self._run(self.commands.up())
        except BaseException as error:
            self.say(f"starting failed ({_reason(error)}): ending the machines that started")
            self.down()
            raise

    def submit(self, submission: Submission) -> None:
        """Start a command, and return."""
        self._run(self.commands.submit(submission))

    def show(self, calls: Iterable[ProgramCall]) -> None:
        """Show what some calls print: the status or the output of a command."""
        self._run(calls)

    def down(self) -> None:
        """End all machines; Ctrl-C does not interrupt this."""
        for call in self.commands.down():
            for attempt in range(1, _ATTEMPTS + 1):
                self.say(f"{call.purpose}: {call}")
                code = self.runner.run(call, is_protected=True)
                if code == 0:
                    break
                if attempt < _ATTEMPTS:
                    self.sleep(_RECONNECT_SECONDS)
            else:
                raise MachinesMayRun(
                    f"`{call}` failed {_ATTEMPTS} times with exit code {code}: machines of '{self.file.name}' "
                    "may still run and cost. Look into the console of your cloud, and try again: "
                    f"rl4sys cluster down {self.file.path}"
                )

    def run(self, submission: Submission, seconds: float | None = None) -> None:
        """Start the machines, run a command until it ends, or for so many seconds, and end the machines in any case."""
        self.up()
        try:
            self._follow(submission, seconds)
        finally:
            self.down()

    def _follow(self, submission: Submission, seconds: float | None) -> None:
        *starting, following = self.commands.run(submission)
        self._run(starting)
        began = time.monotonic()
        probe = self.commands.is_running(submission)
        while True:
            self.say(f"{following.purpose}: {following}")
            left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
            try:
                code = self.runner.run(following, left)
            except TimeoutError:
                raise CommandFailed(
                    "The command did not end within the hours that were given; it was stopped."
                ) from None
            if code == 0:
                return
            # ssh connections break on long commands.
            if probe is None or "still running" not in self.runner.read(probe):
                raise CommandFailed(f"The command failed on the cluster, or its end is unknown (exit code {code}).")
            self.sleep(_RECONNECT_SECONDS)

    def _run(self, calls: Iterable[ProgramCall]) -> None:
        for call in calls:
            self.say(f"{call.purpose}: {call}")
            code = self.runner.run(call)
            if code != 0:
                program = " ".join(call.argv[:2])
                raise ClusterFailed(f"`{program}` failed with exit code {code} ({call.purpose}); its output is above.")


def _reason(error: BaseException) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else str(error)
