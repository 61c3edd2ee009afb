"""`rl4sys verify`: check that a run can be repeated, or resumed, exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.options import Debug, Json, OneRun, Runs

if TYPE_CHECKING:
    from rl4sys.experiments import RunDirectory
    from rl4sys.laboratory.verification.repetition import VerificationResult


def verify(
    run: OneRun,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="CHECKPOINT", help="Start at a checkpoint: a step, latest, best, or its path."),
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps to compare; by default the whole run.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Check exact resume instead: N steps, kill -9, resume, N more must equal 2N."),
    ] = False,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Repeat a run with the same seed, and compare trajectories, weights and metrics bit for bit.

    Prints the first step that differs, what differs there, and the likely cause. The repetition runs in a temporary
    directory (TMPDIR) without loggers, and stops at the first difference.

    The exit code is 0 if all is equal, 1 if anything differs, and 2 if the run could not be repeated.

    [bold]Examples[/]

      rl4sys verify ppo-CartPole-v1-seed0

      rl4sys verify ppo-CartPole-v1-seed0 --steps 20000

      rl4sys verify ppo-CartPole-v1-seed0 --from 50000 --json

      rl4sys verify --resume ppo-CartPole-v1-seed0        [dim](is resuming exact here?)[/]
    """
    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, report
    from rl4sys.config import ConfigError
    from rl4sys.experiments import RunDirectory

    if resume and start is not None:
        raise ConfigError("--resume starts its own run, so --from has no effect; leave one of them out.")
    directory = RunDirectory(Path(run))
    result = _check_resume(directory, steps) if resume else _repeat(directory, start, steps)
    if json:
        print_json({**result.json_values(), "resume": resume})
    else:
        for remark in result.remarks:
            report(f"note: {remark}")
        _print_result(result, resume=resume)
    if not result.equal:
        raise typer.Exit(NO)


def _repeat(directory: RunDirectory, start: str | None, steps: int | None) -> VerificationResult:
    from rl4sys.cli.output import errors, report
    from rl4sys.experiments import Screen, Terminal
    from rl4sys.laboratory.verification.repetition import checkpoint_step, verify

    step = None if start is None else checkpoint_step(directory, start)
    report(f"repeating {directory.path}, " + ("from the first step" if step is None else f"from step {step:,}"))
    with Screen(errors) as screen:
        return verify(
            directory, step, steps, lambda run: [Terminal(screen, "repeated", run.config.training.total_timesteps)]
        )


def _check_resume(directory: RunDirectory, steps: int | None) -> VerificationResult:
    from rl4sys.cli.output import report
    from rl4sys.laboratory.verification.resume import check_resume

    report(f"training the config of {directory.path} twice, once killed and resumed")
    return check_resume(directory, steps)


def _print_result(result: VerificationResult, *, resume: bool) -> None:
    from rl4sys.cli.output import show as say

    compared = f"{result.marks} entries of the hash log and {result.records} metric records"
    if result.equal and resume:
        say(f"exact     killed, resumed at step {result.first:,}, equal bit for bit at step {result.last:,}")
    elif result.equal:
        say(f"equal     bit for bit from step {result.first:,} to step {result.last:,}")
    if result.difference is not None:
        difference = result.difference
        say(f"different after step {difference.after:,}, at the latest at step {difference.step:,}")
        for part, names in difference.parts.items():
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            say(f"{part:<13} {', '.join(names[:4])}{more}")
        if difference.values is not None:
            name = difference.parts["metrics"][0]
            say(f"{name}: {difference.values[0]} recorded, {difference.values[1]} now")
        for number, cause in enumerate(result.causes):
            say(f"{'likely cause' if number == 0 else 'or':<13} {cause}")
    say(f"compared  {compared}")
