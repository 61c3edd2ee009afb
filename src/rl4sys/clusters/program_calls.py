"""Commands of other programs, as records: they are shown before they are run."""

from __future__ import annotations

import importlib.util
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

_log = logging.getLogger(__name__)

_KILL_SECONDS = 20.0
"""Seconds that an interrupted command has to end by itself."""

INSTALL = {
    "ray": "pip install 'rl4sys[ray]'",
    "kubectl": "install it as kubernetes.io/docs/tasks/tools describes",
    "sky": "pip install skypilot, with the extra of your cloud",
    "sbatch": "run this on a login node of the SLURM cluster",
    "squeue": "run this on a login node of the SLURM cluster",
    "scancel": "run this on a login node of the SLURM cluster",
    "tar": "install it from your distribution",
}
"""What to do if a program is missing."""


class ProgramMissing(RuntimeError):
    """A program that is needed is not installed."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One command of another program."""

    argv: tuple[str, ...]
    purpose: str
    input_from: tuple[str, ...] = ()
    """A command whose output is this one's input."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        piped = f"{shlex.join(self.input_from)} | " if self.input_from else ""
        return piped + " ".join([*words, shlex.join(self.argv)])


class CallRunner(Protocol):
    """Runs calls. Tests record them instead."""

    def run(self, call: ProgramCall, seconds: float | None = None, *, is_protected: bool = False) -> int:
        """Run a call with its output shown; the exit code. A protected one does not end with Ctrl-C.

        Raises TimeoutError after so many seconds.
        """

    def read(self, call: ProgramCall) -> str:
        """Run a call and return all that it prints."""

    def succeeds(self, call: ProgramCall) -> bool:
        """Run a call without showing its output; whether its exit code is 0."""


class ProcessRunner:
    """Runs calls as processes of this machine."""

    def run(self, call: ProgramCall, seconds: float | None = None, *, is_protected: bool = False) -> int:
        """Run a call with its output shown on standard error, so that standard output stays that of the command."""
        environment = os.environ | call.environment
        source = None
        if call.input_from:
            source = subprocess.Popen(resolved(call.input_from), stdout=subprocess.PIPE)
        process = subprocess.Popen(
            resolved(call.argv),
            stdin=subprocess.DEVNULL if source is None else source.stdout,
            stdout=sys.stderr.fileno() if _has_descriptor() else None,
            env=environment,
            start_new_session=is_protected,
        )
        try:
            with _signals_deferred() if is_protected else nullcontext():
                return process.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            raise TimeoutError(f"`{call}` took longer than {seconds:.0f} s") from None
        except BaseException:
            _end(process)
            raise
        finally:
            if source is not None:
                source.kill()
                source.wait()

    def read(self, call: ProgramCall) -> str:
        """Run a call and return all that it prints."""
        return _quietly(call).stdout

    def succeeds(self, call: ProgramCall) -> bool:
        """Run a call without showing its output; whether its exit code is 0."""
        return _quietly(call).returncode == 0


def resolved(argv: tuple[str, ...]) -> list[str]:
    """The argv with the path of its program."""
    return [find_program(argv[0]), *argv[1:]]


def find_program(name: str) -> str:
    """The path of a program: on PATH, or beside this interpreter."""
    found = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        advice = INSTALL.get(name, "install it")
        raise ProgramMissing(
            f"This needs the command '{name}', which is not installed here: {advice}. Nothing was started."
        )
    return found


def require_programs(calls: Iterable[ProgramCall]) -> None:
    """Refuse calls whose programs are missing, before the first is run."""
    for call in calls:
        find_program(call.argv[0])


def require_sdk(kind: str) -> None:
    """Refuse a cloud whose package is missing beside ray, if ray is that of this interpreter."""
    package, module = {"gce": ("google-api-python-client", "googleapiclient"), "ec2": ("boto3", "boto3")}.get(
        kind, ("", "")
    )
    if not package or Path(find_program("ray")).parent != Path(sys.executable).parent:
        return
    if importlib.util.find_spec(module) is None:
        raise ProgramMissing(f"Ray needs the package '{package}' for {kind}. Install it with: pip install {package}")


def _quietly(call: ProgramCall) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        resolved(call.argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Continue when Ctrl-C or SIGTERM arrives: machines that are not ended cost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def receive(number: int, frame: FrameType | None) -> None:
        _log.warning("the machines are being ended; this is not interrupted")

    handlers = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _has_descriptor() -> bool:
    try:
        sys.stderr.fileno()
    except (OSError, ValueError):
        return False
    return True
