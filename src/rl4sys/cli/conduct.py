"""Trains one run in this process, with a display; an interruption leaves a checkpoint to resume from."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from rl4sys.cli.exit_codes import INTERRUPTED, STOPPED
from rl4sys.cli.output import errors, show, tell
from rl4sys.experiments import ExperimentConfig, Result, Run, RunDirectory, Screen, Terminal, plot
from rl4sys.laboratory.run_index.index_logger import follow
from rl4sys.run_files import CURVE


def run_here(config: ExperimentConfig, *, allow_fallback: bool, debug: bool) -> None:
    """A new run, from its first step to its summary."""
    with interruptible() as stop:
        run = Run.create(config, allow_fallback=allow_fallback)
        if debug:
            run.debug()
        announce(run)
        conduct(run, stop)


def announce(run: Run) -> None:
    """Say where the run lives and what was chosen for it."""
    grade = run.components.grade
    tell(f"run       {run.directory.path}")
    tell(f"device    {run.components.device}, {run.threads} thread(s)")
    tell(f"exactness {grade.name}: {grade.value}")
    if run.replay_cost is not None:
        tell(f"replay    {run.replay_cost}")


def conduct(run: Run, stop: Callable[[], bool]) -> None:
    """Train until the end or until told to stop, then tell how it went."""
    with follow(run.directory.path) as follower:
        if run.config.logging.terminal:
            with Screen(errors) as screen:
                terminal = Terminal(screen, run.config.name, run.config.training.total_timesteps)
                result = run.train([terminal, follower], stop)
        else:
            result = run.train([follower], stop)
    if run.stopped is not None and not result.finished:
        tell(f"stopped by an alert: {run.stopped}; go on with: rl4sys resume {run.directory.path}")
        raise typer.Exit(STOPPED)
    if not result.finished:
        tell(f"interrupted at step {result.steps:,}; go on with: rl4sys resume {run.directory.path}")
        raise typer.Exit(INTERRUPTED)
    _conclude(run.directory, result)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Tells whether somebody asked to stop (Ctrl-C or SIGTERM). Asking a second time stops at once."""
    asked: list[int] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)
        tell("stopping after this turn, with a checkpoint; once more to stop at once")

    handlers = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def picture_of(directories: Sequence[RunDirectory], output: Path) -> Path | None:
    """The learning curve of some runs as a PNG, if it can be drawn."""
    return drawn(lambda: plot(directories, output, "evaluation/return"))


def drawn(draw: Callable[[], Path]) -> Path | None:
    """A picture; one that cannot be drawn is told, and fails nothing."""
    try:
        return draw()
    except (OSError, ValueError, ImportError) as error:
        tell(f"no picture: {error}")
        return None


def score(value: float | None) -> str:
    """A return for people."""
    return "–" if value is None else f"{value:.1f}"


def _conclude(directory: RunDirectory, result: Result) -> None:
    picture = picture_of([directory], directory.path / CURVE)
    show(f"final evaluation  {score(result.evaluation)}   best {score(result.best)}")
    show(f"steps             {result.steps:,} in {result.seconds:.0f} s")
    show(f"run               {directory.path}")
    if picture is not None:
        show(f"learning curve    {picture}")
    show(f"evaluate it with  rl4sys evaluate {directory.path}")
