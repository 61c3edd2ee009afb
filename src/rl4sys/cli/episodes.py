"""`rl4sys evaluate` and `rl4sys simulate`: episodes of a trained policy, run, watched or recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.options import Best, Debug, Json, OneRun, Runs, Source

if TYPE_CHECKING:
    from rl4sys.environments import EnvironmentConfig
    from rl4sys.experiments import SimulatedEpisode, Simulation
    from rl4sys.experiments.policies.trained_policy import TrainedPolicy

_MAX_ROWS = 40
"""Rows of the table of simulated episodes; --json has all."""


def evaluate(
    run: OneRun,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environments.")] = 0,
    best: Best = True,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Evaluate a trained policy: run episodes with the exploit policy in fresh environments.

    [bold]Examples[/]

      rl4sys evaluate runs/ppo-CartPole-v1-seed0-20260101-120000

      rl4sys evaluate ppo-CartPole --episodes 100 --json
    """
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.experiments import RunDirectory, evaluate_run

    directory = RunDirectory(Path(run))
    step, outcome, skipped = evaluate_run(directory, episodes, seed, best=best)
    for reason in skipped:
        report(f"warning: skipped a damaged checkpoint ({reason}); using that of step {step:,}.")
    summary = {
        "run": str(directory.path),
        "step": step,
        "episodes": episodes,
        "mean": outcome.mean,
        "deviation": outcome.deviation,
        "min": min(outcome.returns),
        "max": max(outcome.returns),
        "mean_length": sum(outcome.lengths) / len(outcome.lengths),
    }
    if json:
        print_json({**summary, "returns": outcome.returns, "lengths": outcome.lengths, "skipped": skipped})
        return
    columns = ("checkpoint", "episodes", "mean return", "deviation", "min", "max", "mean length")
    numbers = [f"{summary[name]:.2f}" for name in ("mean", "deviation", "min", "max", "mean_length")]
    print_table(columns, [[f"step {step:,}", str(episodes), *numbers]])


def simulate(
    policy: Source,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 10,
    max_length: Annotated[int | None, typer.Option(min=1, help="Steps after which an episode is truncated.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="Use the exploit policy, or explore as in training.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environment and of the policy.")] = 0,
    best: Best = True,
    env: Annotated[str | None, typer.Option(help="The environment, if not that of training.")] = None,
    render: Annotated[bool, typer.Option("--render", help="Show the environment on the screen.")] = False,
    video: Annotated[Path | None, typer.Option(help="Record a video: out.mp4. Needs no screen.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot returns and lengths: out.png.")] = None,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run a trained policy in its environment, and print the return and length of each episode.

    The config, environment, normaliser and weights are read from the run.

    [bold]Examples[/]

      rl4sys simulate ppo-CartPole --episodes 20

      rl4sys simulate runs/sac-Pendulum-v1-seed0-20260101-120000 --video pendulum.mp4 --episodes 3

      rl4sys simulate runs/ppo-CartPole-v1-seed0-20260101-120000/checkpoints/000000050000 --stochastic --json

      rl4sys simulate policy.rl4sys --env CartPole-v1 --max-length 200 --plot returns.png
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.config import ConfigError
    from rl4sys.experiments import Simulation, SimulationSetup, plot_episodes
    from rl4sys.experiments.policies.trained_policy import find_policy

    if render and video is not None:
        raise ConfigError("--render and --video: an environment can render for one of them only; leave one out.")
    trained = find_policy(policy, best=best)
    for reason in trained.skipped:
        report(f"warning: skipped a damaged checkpoint ({reason}); using that of step {trained.policy.steps:,}.")
    environment = _environment(trained, env)
    spec = trained.policy.exploit if deterministic else trained.policy.explore
    play = SimulationSetup(spec, trained.policy.weights, environment, seed, max_length, render, video)
    with Simulation(play) as simulation:
        played = list(_with_progress(simulation, episodes))
    summary = _summary(trained, environment.name, played) | {"deterministic": deterministic, "seed": seed}
    recorded = simulation.video
    if plot is not None:
        plot_episodes(played, f"{trained.name}, step {trained.policy.steps:,}", plot)
    if json:
        details = recorded._asdict() | {"path": str(recorded.path)} if recorded is not None else None
        print_json(summary | {"video": details, "plot": str(plot) if plot else None})
        return
    _print_episodes(played, summary)
    if recorded is not None:
        rate = f"{recorded.frames_per_second:g} per second"
        show(f"video   {recorded.path}: {recorded.frames:,} frames, {rate}, {recorded.width}×{recorded.height}")
    if plot is not None:
        show(f"plot    {plot}")


def _environment(trained: TrainedPolicy, name: str | None) -> EnvironmentConfig:
    from rl4sys.config import ConfigError
    from rl4sys.environments import ENVIRONMENTS

    if name is not None:
        return ENVIRONMENTS.parse({"name": name})
    if trained.environment is None:
        raise ConfigError(
            f"{trained.origin} does not contain the environment it was trained in. Give one: --env CartPole-v1"
        )
    return trained.environment


def _with_progress(simulation: Simulation, count: int) -> Iterator[SimulatedEpisode]:
    """Run the episodes, with a progress bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from rl4sys.cli.output import errors

    columns = (TextColumn("episodes"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task("", total=count)
        for episode in simulation.episodes(count):
            progress.update(task, advance=1, description=f"return {episode.return_:.1f}")
            yield episode


def _summary(trained: TrainedPolicy, environment: str, episodes: Sequence[SimulatedEpisode]) -> dict[str, Any]:
    import statistics

    returns = [episode.return_ for episode in episodes]
    return {
        "policy": str(trained.origin),
        "step": trained.policy.steps,
        "version": trained.policy.version,
        "environment": environment,
        "episodes": [
            {"return": episode.return_, "length": episode.length, "ended": episode.ended} for episode in episodes
        ],
        "mean": statistics.fmean(returns),
        "deviation": statistics.pstdev(returns),
        "min": min(returns),
        "max": max(returns),
        "mean_length": statistics.fmean(episode.length for episode in episodes),
        "skipped": list(trained.skipped),
    }


def _print_episodes(episodes: Sequence[SimulatedEpisode], summary: dict[str, Any]) -> None:
    from rl4sys.cli.output import print_table, show

    rows = [
        [str(number), f"{episode.return_:.2f}", f"{episode.length:,}", episode.ended]
        for number, episode in enumerate(episodes[:_MAX_ROWS], start=1)
    ]
    print_table(("episode", "return", "length", "ended"), rows)
    if len(episodes) > _MAX_ROWS:
        show(f"… and {len(episodes) - _MAX_ROWS:,} more; --json lists all of them")
    show(f"policy  {summary['policy']}, step {summary['step']:,}, in {summary['environment']}")
    show(
        f"return  {summary['mean']:.2f} ± {summary['deviation']:.2f}, from {summary['min']:.2f} to {summary['max']:.2f}"
    )
    show(f"length  {summary['mean_length']:.1f} on average")
