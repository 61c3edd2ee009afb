"""`rl4sys verify`: does a run come out the same again?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.runs_option import Debug, Json, OneRun

if TYPE_CHECKING:
    from rl4sys.experiments import RunDirectory
    from rl4sys.laboratory.verification.repetition import Verdict


def verify(
    run: OneRun,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="CHECKPOINT", help="Begin at a checkpoint: a step, latest, best, or its path."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Compare so many steps; as far as the run came if not given.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Prove exact resume instead: N steps, kill -9, resume, N more equal 2N.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Repeat a run with the same seed and compare trajectories, weights and metrics, to the bit.

    Where it differs, the first step is named, with what differs and what probably caused it. The repetition is made in
    a temporary directory (TMPDIR), tells no logger, and ends where it parts.

    The exit code is 0 if all is equal, 1 if anything differs, and 2 if it could not be found out.

    [bold]Examples[/]

      rl4sys verify ppo-CartPole-v1-seed0

      rl4sys verify ppo-CartPole-v1-seed0 --steps 20000

      rl4sys verify ppo-CartPole-v1-seed0 --from 50000 --json

      rl4sys verify --resume ppo-CartPole-v1-seed0        [dim](is resuming exact here?)[/]
    """
    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, tell
    from rl4sys.config import ConfigError
    from rl4sys.experiments import find_run

    if resume and start is not None:
        raise ConfigError("--resume makes a run of its own, so it has no --from; leave one of them out.")
    directory = find_run(run)
    verdict = _proved(directory, steps) if resume else _repeated(directory, start, steps)
    if json:
        print_json({**verdict.facts(), "resume": resume})
    else:
        for remark in verdict.remarks:
            tell(f"note: {remark}")
        _say(verdict, resume=resume)
    if not verdict.equal:
        raise typer.Exit(NO)


def _repeated(directory: RunDirectory, start: str | None, steps: int | None) -> Verdict:
    from rl4sys.cli.output import errors, tell
    from rl4sys.experiments import Screen, Terminal
    from rl4sys.laboratory.verification.repetition import checkpoint_step, verify

    step = None if start is None else checkpoint_step(directory, start)
    tell(f"repeating {directory.path}, " + ("from the first step" if step is None else f"from step {step:,}"))
    with Screen(errors) as screen:
        return verify(
            directory, step, steps, lambda run: [Terminal(screen, "repeated", run.config.training.total_timesteps)]
        )


def _proved(directory: RunDirectory, steps: int | None) -> Verdict:
    from rl4sys.cli.output import tell
    from rl4sys.laboratory.verification.resume import prove_resume

    tell(f"training like {directory.path} twice, once killed and resumed")
    return prove_resume(directory, steps)


def _say(verdict: Verdict, *, resume: bool) -> None:
    from rl4sys.cli.output import show as say

    compared = f"{verdict.marks} hashes of trajectory and weights, {verdict.records} records of metrics"
    if verdict.equal and resume:
        say(f"exact     killed, resumed at step {verdict.first:,}, equal to the bit at step {verdict.last:,}")
    elif verdict.equal:
        say(f"equal     to the bit from step {verdict.first:,} to step {verdict.last:,}")
    if verdict.difference is not None:
        difference = verdict.difference
        say(f"different after step {difference.after:,}, at step {difference.step:,} at the latest")
        for part, names in difference.parts.items():
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            say(f"{part:<13} {', '.join(names[:4])}{more}")
        if difference.values is not None:
            name = difference.parts["metrics"][0]
            say(f"{name}: {difference.values[0]} recorded, {difference.values[1]} now")
        for number, cause in enumerate(verdict.causes):
            say(f"{'likely cause' if number == 0 else 'or':<13} {cause}")
    say(f"compared  {compared}")
