"""Trains one run in this process; an interrupt leaves a checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from rl4sys.cli.exit_codes import INTERRUPTED, STOPPED
from rl4sys.cli.output import errors, report, show
from rl4sys.experiments import ExperimentConfig, Result, Run, RunDirectory, plot
from rl4sys.laboratory.formatting import format_return
from rl4sys.laboratory.run_mirror import RunMirror
from rl4sys.laboratory.training import train_with_progress
from rl4sys.laboratory.trials.trial import TrialOptions
from rl4sys.run_files import CURVE, RETURN

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup


def train_new(
    config: ExperimentConfig,
    options: TrialOptions,
    settings: str | None,
    group: RankGroup | None = None,
    began: Callable[[str], None] = lambda run: None,
) -> None:
    """Create a run, train it and print its summary. `settings` says where the config comes from.

    With a group, this is rank 0. `began` is called with the run directory.
    """
    with stop_on_signal() as stop:
        run = Run.create(config, allow_fallback=options.allow_fallback, group=group, start=options.start)
        began(str(run.directory.path))
        if options.debug:
            run.debug()
        url = options.place_of(run.directory.path.name)
        mirror = None if url is None else RunMirror(url)
        if mirror is not None:
            mirror.attach(run)
            report(f"storage   {url}")
        # Not before the run exists: a wrong name is refused first.
        if settings is not None:
            report(settings)
        if options.start is not None:
            report(f"weights   of {options.start.source}")
        announce(run)
        train_to_end(run, stop, mirror)


def resume_run(
    directory: RunDirectory,
    options: TrialOptions,
    url: str | None = None,
    group: RankGroup | None = None,
    began: Callable[[str], None] = lambda run: None,
) -> None:
    """Resume a run, train it to its end and print its summary. With a URL it is stored there again."""
    began(str(directory.path))
    mirror = None if url is None else RunMirror(url)
    with stop_on_signal() as stop:
        run = options.resume(directory, group)
        if options.debug:
            run.debug()
        if mirror is not None:
            mirror.attach(run)
        announce(run)
        report(f"resuming  at step {run.steps:,}")
        train_to_end(run, stop, mirror)


def announce(run: Run) -> None:
    """Print where the run is, and which device, threads and exactness it has."""
    grade = run.components.grade
    report(f"run       {run.directory.path}")
    report(f"device    {run.components.device}, {run.threads} thread(s)")
    if run.config.training.ranks > 1:
        report(f"ranks     {run.ranks}")
    report(f"exactness {grade.name}: {grade.value}")
    if run.replay_cost is not None:
        report(f"replay    {run.replay_cost}")
    if any(optimizer.is_compiled for optimizer in run.learner.algorithm.train_state.optimizers.values()):
        report("compile   losses are compiled at the first update, which takes up to a few minutes")


def train_to_end(run: Run, stop: Callable[[], bool], mirror: RunMirror | None = None) -> None:
    """Train until the end or until asked to stop, then print the result or how to resume."""
    result = train_with_progress(run, errors, stop)
    if mirror is not None:
        mirror.conclude(run.directory.path)
    if result.solved is not None:
        report(f"solved: {result.solved}; train on with: rl4sys resume {run.directory.path}")
    if run.stopped is not None and not result.finished:
        report(f"stopped by an alert: {run.stopped}; resume with: rl4sys resume {run.directory.path}")
        raise typer.Exit(STOPPED)
    if not result.finished:
        report(f"interrupted at step {result.steps:,}; resume with: rl4sys resume {run.directory.path}")
        raise typer.Exit(INTERRUPTED)
    _print_result(run.directory, result)
    seconds = sum(optimizer.compile_seconds for optimizer in run.learner.algorithm.train_state.optimizers.values())
    if seconds:
        show(f"compiling took    {seconds:.0f} s of that")


@contextmanager
def stop_on_signal() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM asked to stop. A second signal stops at once."""
    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        report("stopping with a checkpoint; a second Ctrl-C stops at once")

    handlers = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def plot_returns(directories: Sequence[RunDirectory], output: Path) -> Path | None:
    """Plot the evaluation returns of some runs into a PNG, if that is possible."""
    return try_plot(lambda: plot(directories, output, RETURN))


def try_plot(draw: Callable[[], Path]) -> Path | None:
    """Draw a plot; if that fails, print why and continue."""
    try:
        return draw()
    except (OSError, ValueError, ImportError) as error:
        report(f"no plot: {error}")
        return None


def _print_result(directory: RunDirectory, result: Result) -> None:
    curve = plot_returns([directory], directory.path / CURVE)
    show(f"final evaluation  {format_return(result.evaluation)}   best {format_return(result.best)}")
    show(f"steps             {result.steps:,} in {result.seconds:.0f} s")
    show(f"run               {directory.path}")
    if curve is not None:
        show(f"learning curve    {curve}")
    show(f"evaluate it with  rl4sys evaluate {directory.path}")
