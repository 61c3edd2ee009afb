"""Commands as a user types them, in this process or in one of their own."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.programs import Program

from rl4sys.cli.main import main
from rl4sys.experiments import load_experiment


class Outcome(NamedTuple):
    """The exit code and output of a command."""

    code: int
    out: str
    err: str


class Here:
    """Runs commands in this process: the same code without seconds of imports."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capture = monkeypatch, capsys

    def __call__(self, *arguments: str) -> Outcome:
        self._patch.setattr(sys, "argv", ["rl4sys", *arguments])
        self._capture.readouterr()
        root = logging.getLogger()
        handlers = root.handlers[:]
        try:
            main()
        except SystemExit as ending:
            captured = self._capture.readouterr()
            return Outcome(int(ending.code or 0), captured.out, captured.err)
        finally:
            root.handlers[:] = handlers


def start(*arguments: str, cwd: Path, program: str = "rl4sys.cli") -> Program:
    """A command in a process of its own."""
    return Program(program, *arguments, cwd=cwd)


def finish(process: Program, seconds: float = 60) -> Outcome:
    """Wait for a command to end."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"still running after {seconds} s:\n{out}\n{err}") from None
    return Outcome(process.wait(), out, err)


def wait_until(fact: Callable[[], bool], process: Program | subprocess.Popen[str], seconds: float = 60) -> None:
    """Poll until a condition holds, or the process has ended."""
    deadline = time.monotonic() + seconds
    while not fact() and process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            raise AssertionError(f"did not happen within {seconds} s: {process.communicate()}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.01)


def write_config(path: Path, kind: dict[str, object]) -> Path:
    """Write a config file with all values explicit."""
    path.write_text(yaml.safe_dump(load_experiment(kind).model_dump(mode="json")))
    return path
