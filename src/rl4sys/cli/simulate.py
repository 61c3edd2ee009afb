"""`rl4sys simulate`: watch, record or measure a trained policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rl4sys.environments import EnvironmentConfig
    from rl4sys.experiments import SimulatedEpisode, Simulation
    from rl4sys.experiments.policies.trained_policy import TrainedPolicy

_MOST_ROWS = 40
"""Of the table for people; a script reads JSON."""


def simulate(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CHECKPOINT",
            help="A run, the beginning of its name, a checkpoint, a policy file, or a learner of a server.",
        ),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to run.")] = 10,
    max_length: Annotated[int | None, typer.Option(min=1, help="Cut episodes after this many steps.")] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic/--stochastic", help="Do the best, or try things out as in training.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environment and of chance in the policy.")] = 0,
    best: Annotated[bool, typer.Option("--best/--latest", help="Which checkpoint of a run.")] = True,
    env: Annotated[str | None, typer.Option(help="Another environment than the one of training.")] = None,
    render: Annotated[bool, typer.Option("--render", help="Show it on the screen.")] = False,
    video: Annotated[Path | None, typer.Option(help="Record it: out.mp4. Needs no screen.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw returns and lengths: out.png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Run a trained policy in its environment and tell how each episode went.

    Config, environment, normaliser and weights are found by themselves.

    [bold]Examples[/]

      rl4sys simulate ppo-CartPole --episodes 20

      rl4sys simulate runs/sac-Pendulum-v1-seed0-20260101-120000 --video pendulum.mp4 --episodes 3

      rl4sys simulate runs/ppo-CartPole-v1-seed0-20260101-120000/checkpoints/000000050000 --stochastic --json

      rl4sys simulate policy.rl4sys --env CartPole-v1 --max-length 200 --plot returns.png
    """
    from rl4sys.cli.output import print_json, show, tell
    from rl4sys.config import ConfigError
    from rl4sys.experiments import Simulation, SimulationSetup, plot_episodes
    from rl4sys.experiments.policies.trained_policy import find_policy

    if render and video is not None:
        raise ConfigError("--render and --video: an environment draws for one of them at a time; leave one out.")
    trained = find_policy(policy, best=best)
    for reason in trained.skipped:
        tell(f"warning: passed over a damaged checkpoint ({reason}); using the one of step {trained.policy.steps:,}.")
    environment = _environment(trained, env)
    spec = trained.policy.exploit if deterministic else trained.policy.explore
    play = SimulationSetup(spec, trained.policy.weights, environment, seed, max_length, render, video)
    with Simulation(play) as simulation:
        played = list(_with_progress(simulation, episodes))
    facts = _facts(trained, environment.name, played) | {"deterministic": deterministic, "seed": seed}
    recorded = simulation.video
    if plot is not None:
        plot_episodes(played, f"{trained.name}, step {trained.policy.steps:,}", plot)
    if json:
        details = recorded._asdict() | {"path": str(recorded.path)} if recorded is not None else None
        print_json(facts | {"video": details, "plot": str(plot) if plot else None})
        return
    _print_episodes(played, facts)
    if recorded is not None:
        rate = f"{recorded.frames_per_second:g} a second"
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
            f"{trained.origin} does not say which environment it was trained in. Name one: --env CartPole-v1"
        )
    return trained.environment


def _with_progress(simulation: Simulation, count: int) -> Iterator[SimulatedEpisode]:
    """The episodes, with a bar on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from rl4sys.cli.output import errors

    columns = (TextColumn("episodes"), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeRemainingColumn(), console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task("", total=count)
        for episode in simulation.episodes(count):
            progress.update(task, advance=1, description=f"return {episode.return_:.1f}")
            yield episode


def _facts(trained: TrainedPolicy, environment: str, episodes: Sequence[SimulatedEpisode]) -> dict[str, Any]:
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


def _print_episodes(episodes: Sequence[SimulatedEpisode], facts: dict[str, Any]) -> None:
    from rl4sys.cli.output import print_table, show

    rows = [
        [str(number), f"{episode.return_:.2f}", f"{episode.length:,}", episode.ended]
        for number, episode in enumerate(episodes[:_MOST_ROWS], start=1)
    ]
    print_table(("episode", "return", "length", "ended"), rows)
    if len(episodes) > _MOST_ROWS:
        show(f"… and {len(episodes) - _MOST_ROWS:,} more; --json lists all of them")
    show(f"policy  {facts['policy']}, step {facts['step']:,}, in {facts['environment']}")
    show(f"return  {facts['mean']:.2f} ± {facts['deviation']:.2f}, from {facts['min']:.2f} to {facts['max']:.2f}")
    show(f"length  {facts['mean_length']:.1f} on average")
