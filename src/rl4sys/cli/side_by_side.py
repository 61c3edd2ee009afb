"""Several runs at once, each in a process of its own, with one line of progress each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

import typer

from rl4sys.cli.conduct import INTERRUPTED, interruptible, picture_of, score
from rl4sys.cli.output import errors, print_table, show, tell
from rl4sys.experiments import ExperimentConfig, Record, Result, RunDirectory, Screen, Terminal

_PATIENCE = 0.2
"""Seconds between two looks at whether somebody asked to stop."""


class SeedsFailed(RuntimeError):
    """Some of several runs failed; the others are finished."""


def run_all(configs: Sequence[ExperimentConfig], jobs: int, *, allow_fallback: bool, debug: bool = False) -> None:
    """Train all of them, a few at a time; one that fails does not stop the others."""
    children = [Child(config if jobs == 1 else _with_one_thread(config)) for config in configs]
    with Screen(errors) as screen, interruptible() as stop:
        _Crew(children, screen, stop, {"allow_fallback": allow_fallback, "debug": debug}).work(jobs)
    _summarize([child for child in children if child.code == 0])
    stopped = [child for child in children if child.code == INTERRUPTED and child.directory]
    for child in stopped:
        tell(f"interrupted: {child.title}; go on with: rl4sys resume {child.directory}")
    if unstarted := [child for child in children if child.process is None]:
        tell(f"not started: {', '.join(child.title for child in unstarted)}")
    failed = [f"{child.title}: {child.complaint}" for child in children if child.code not in (None, 0, INTERRUPTED)]
    if failed:
        raise SeedsFailed(f"{len(failed)} of {len(children)} runs failed:" + "".join(f"\n  {text}" for text in failed))
    if stop() or stopped:
        raise typer.Exit(INTERRUPTED)


@dataclass(slots=True)
class Child:
    """One run, and the process that it is trained in."""

    config: ExperimentConfig
    process: subprocess.Popen[str] | None = None
    directory: Path | None = None
    complaint: str = "it was killed"
    code: int | None = None
    """How the process ended; None if it never started."""

    @property
    def title(self) -> str:
        """How the run is called on the screen."""
        return f"{self.config.name}, seed {self.config.experiment.seed}"


class _Crew:
    """Starts children, shows what they send, and passes on the wish to stop."""

    def __init__(
        self, children: Sequence[Child], screen: Screen, stop: Callable[[], bool], wishes: Mapping[str, bool]
    ) -> None:
        self._waiting = list(children)
        self._working: dict[int, tuple[Child, Terminal]] = {}
        self._screen, self._stop, self._wishes = screen, stop, wishes
        self._lines: Queue[tuple[int, str | None]] = Queue()
        self._told_to_stop = False

    def work(self, jobs: int) -> None:
        """Until the last child has ended; by force if this is left by an exception, such as a second Ctrl-C."""
        try:
            while self._working or (self._waiting and not self._stop()):
                while self._waiting and len(self._working) < jobs and not self._stop():
                    self._start(self._waiting.pop(0))
                if self._stop() and not self._told_to_stop:
                    self._told_to_stop = True
                    for child, _ in self._working.values():
                        _process_of(child).terminate()
                try:
                    self._take(*self._lines.get(timeout=_PATIENCE))
                except Empty:
                    continue
        finally:
            for child, _ in self._working.values():
                _process_of(child).kill()
                _process_of(child).wait()

    def _start(self, child: Child) -> None:
        order = {"config": child.config.model_dump(mode="json"), **self._wishes}
        # A session of its own: Ctrl-C in the terminal is for this process, which passes it on once.
        child.process = process = subprocess.Popen(
            [sys.executable, "-m", "rl4sys.cli.one_run"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | ({"OMP_NUM_THREADS": "1"} if child.config.experiment.threads == 1 else {}),
        )
        terminal = Terminal(self._screen, child.title, child.config.training.total_timesteps)
        self._working[process.pid] = (child, terminal)
        assert process.stdin is not None
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        threading.Thread(target=self._listen, args=(process.pid, process.stdout), daemon=True).start()
        threading.Thread(target=self._relay, args=(child.title, process.stderr), daemon=True).start()

    def _listen(self, pid: int, output: IO[str]) -> None:
        with output:
            for line in output:
                self._lines.put((pid, line))
        self._lines.put((pid, None))

    def _relay(self, title: str, complaints: IO[str]) -> None:
        with complaints:
            for line in complaints:
                self._screen.say(f"{title}: {line.rstrip()}")

    def _take(self, pid: int, line: str | None) -> None:
        child, terminal = self._working[pid]
        if line is None:
            process = _process_of(child)
            code = process.wait()
            # One that was told to stop while it still started has nothing to save.
            child.code = INTERRUPTED if self._told_to_stop and code == -signal.SIGTERM else code
            assert process.stdin is not None
            process.stdin.close()
            del self._working[pid]
            return
        match _parsed(line):
            case {"record": {"step": step, "metrics": metrics, "timing": timing}}:
                terminal.log(Record(step, metrics, timing))
            case {"directory": directory}:
                child.directory = Path(directory)
            case {"error": complaint}:
                child.complaint = complaint
            case _:
                self._screen.say(f"{child.title}: {line.rstrip()}")


def _process_of(child: Child) -> subprocess.Popen[str]:
    if child.process is None:
        raise RuntimeError(f"{child.title} was never started.")
    return child.process


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _with_one_thread(config: ExperimentConfig) -> ExperimentConfig:
    """Side by side, runs share the cores best when each keeps to one; a number in the config is respected."""
    if config.experiment.threads is not None:
        return config
    return config.model_copy(update={"experiment": config.experiment.model_copy(update={"threads": 1})})


def _summarize(children: Sequence[Child]) -> None:
    directories = [RunDirectory(child.directory) for child in children if child.directory is not None]
    if not directories:
        return
    rows = []
    for directory in directories:
        result = Result.read(directory.result)
        if result is not None:
            rows.append([str(directory.path), f"{result.steps:,}", score(result.evaluation), score(result.best)])
    print_table(("run", "steps", "final", "best"), rows)
    name = children[0].config.name
    picture = picture_of(directories, directories[0].path.parent / f"{name}.png")
    if picture is not None:
        show(f"learning curve  {picture}")
