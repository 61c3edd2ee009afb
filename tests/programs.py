"""Python programs that tests start and kill, each in its own process.

They are forked from one process that has imported torch already, since importing it takes longer than most of them run.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_PROCESSES = multiprocessing.get_context("forkserver")
_IMPORTED = ["pytest", "rl4sys.cli.commands", "rl4sys.cli.local_training", "rl4sys.server.__main__"]
_IMPORTED += ["matplotlib.figure", "matplotlib.backends.backend_agg"]
# A process can only be forked safely while it has no other threads.
_SINGLE_THREADED = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class _Context(NamedTuple):
    """Working directory, environment and output files of a process."""

    cwd: Path
    environment: Mapping[str, str]
    out: Path
    err: Path


class Program:
    """`python -m MODULE`, or `python PATH`, running in the background; its output is read when it has ended.

    The interface is that of `subprocess.Popen` with text output.
    """

    def __init__(self, program: str, *arguments: str, cwd: Path | None = None) -> None:
        _prepare()
        output = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, output)
        self._out, self._err = output / "out", output / "err"
        self._out.touch()
        self._err.touch()
        context = _Context(cwd or Path.cwd(), dict(os.environ), self._out, self._err)
        self._process = _PROCESSES.Process(target=_run, args=(program, arguments, context))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end; returns its standard output and standard error."""
        self.wait(timeout)
        return self._out.read_text(), self._err.read_text()

    def first_line(self, seconds: float = 120.0) -> str:
        """The first line of its output, as soon as it is printed."""
        deadline = time.monotonic() + seconds
        while "\n" not in (said := self._out.read_text()):
            if self.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"it printed {said!r}; on standard error: {self.communicate()[1]}")
            self._process.join(0.01)
        return said.partition("\n")[0]


def _prepare() -> None:
    """Start the process that others are forked from, unless it is running."""
    _PROCESSES.set_forkserver_preload(_IMPORTED)
    before = {name: os.environ.get(name) for name in _SINGLE_THREADED}
    os.environ |= _SINGLE_THREADED
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(program: str, arguments: tuple[str, ...], context: _Context) -> None:
    """Run the program in the new process as `python` would."""
    os.environ.clear()
    os.environ |= context.environment
    os.chdir(context.cwd)
    for number, path in ((1, context.out), (2, context.err)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.argv = [program, *arguments]
    if Path(program).exists():
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
