"""`rl4sys train`: train a policy."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.completion import algorithm_names, experiments
from rl4sys.cli.options import AllowFallback, DebugTraining, RunsToMake, Start
from rl4sys.cli.where import (
    Address,
    Cpus,
    Detach,
    Gpus,
    Jobs,
    On,
    Retries,
    Storage,
    choose_place,
    describe_place,
    require_place,
    require_use_of_address,
    shared_directory,
    storage_url,
    submit_if_asked,
)

if TYPE_CHECKING:
    from rl4sys.experiments import ExperimentConfig
    from rl4sys.experiments.starting_point import StartingPoint
    from rl4sys.laboratory.trials.trial import TrialOptions


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONFIG.yaml|KEY=VALUE",
            autocompletion=experiments,
            show_default=False,
            help="A config file (a path, or the name of one that ships with RL4Sys), and settings to override.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(autocompletion=algorithm_names, help="The algorithm: ppo, dqn, sac, …")
    ] = None,
    env: Annotated[str | None, typer.Option(help="The environment, such as CartPole-v1.")] = None,
    start: Start = None,
    parts: Annotated[
        str | None,
        typer.Option(help="With --from: only these weights, separated by commas, such as actor or actor.0,critic.0."),
    ] = None,
    normalisers: Annotated[
        bool,
        typer.Option(
            "--normalisers", "--normalizers", help="With --from: take over the statistics of observations and rewards."
        ),
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="Learn from recorded episodes instead of acting: an .npz file, a Minari dataset, or the directory of "
            "a server's learner."
        ),
    ] = None,
    seed: Annotated[str | None, typer.Option(help="One seed, or several: 1,2,3. Each seed is a run.")] = None,
    jobs: Jobs = None,
    ranks: Annotated[
        int | None, typer.Option(min=1, help="Processes that learn together; by default 'training.ranks'.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    runs: RunsToMake = None,
    on: On = None,
    address: Address = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    retries: Retries = None,
    storage: Storage = None,
    detach: Detach = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check and show the resolved config.")] = False,
    allow_fallback: AllowFallback = False,
    debug: DebugTraining = False,
) -> None:
    """Train a policy from a config file, or with tuned settings for an algorithm and an environment.

    KEY=VALUE overrides a setting: the key is its path in the config, with dots; the value is written as in YAML.
    Keys of the section 'experiment' may omit its name: seed=3, device=cpu. `rl4sys config show` lists all keys.

    [bold]Examples[/]

      rl4sys train --algorithm ppo --env CartPole-v1

      rl4sys train ppo_cartpole.yaml --name first-try

      rl4sys train my.yaml algorithm.lr=1e-3 training.total_timesteps=1e6

      rl4sys train my.yaml "network.actor.hidden_dims=[128, 128]" device=cpu

      rl4sys train --algorithm ppo --env LunarLander-v3 --seed 1,2,3 --jobs 2

      rl4sys train my.yaml --seed 1,2,3 --on ray --address auto --storage s3://lab/runs

      rl4sys train my.yaml --from last algorithm.lr=1e-4      [dim]fine-tune[/]

      rl4sys train other_task.yaml --from policy.rl4sys --parts actor.0,actor.1 --normalisers

      rl4sys train --algorithm iql --env Pendulum-v1 --data episodes.npz

      rl4sys train pixels.yaml --ranks 2

      rl4sys train pixels.yaml --ranks 4 --gpus 1 --on ray --address auto --storage s3://lab/runs

      rl4sys train my.yaml --dry-run
    """
    if sys.stderr.isatty():
        # Before torch is imported, which takes seconds on a busy machine.
        typer.echo("starting  loading torch and the environment", err=True)
    from rl4sys.cli.seed_group import train_seeds
    from rl4sys.config import ConfigError
    from rl4sys.experiments import load_experiment
    from rl4sys.experiments.preflight import fit_to_machine
    from rl4sys.laboratory.trials.config import placed
    from rl4sys.laboratory.trials.trial import TrialOptions

    source, overrides, settings = _source(arguments or [], algorithm, env)
    if name is not None:
        overrides.append(f"experiment.name={json.dumps(name, ensure_ascii=False)}")
    if runs is not None:
        overrides.append(f"experiment.directory={json.dumps(str(runs), ensure_ascii=False)}")
    if data is not None:
        overrides.append(f"training.data={json.dumps(data, ensure_ascii=False)}")
    if ranks is not None:
        overrides.append(f"training.ranks={ranks}")
    choices = [[f"experiment.seed={number}"] for number in _seeds(seed)] or [[]]
    configs = [load_experiment(source, [*overrides, *choice]) for choice in choices]
    where = choose_place(
        configs[0].where, on=on, address=address, cpus=cpus, gpus=gpus, jobs=jobs, retries=retries, storage=storage
    )
    configs = [config.model_copy(update={"where": where}) for config in configs]
    require_use_of_address(where, configs[0].training.collection)
    if (directory := shared_directory(where)) is not None:
        configs = [placed(config, Path(directory)) for config in configs]
    options = TrialOptions(allow_fallback, debug, storage_url(where), start=_start(start, parts, normalisers, where.on))
    if dry_run:
        if where.on == "local":
            fit_to_machine(configs[0], allow_fallback=allow_fallback)
        _show(configs, settings)
        return
    if ranks is not None and ranks > 1 and where.on != "ray" and (len(configs) > 1 or where.on == "slurm"):
        raise ConfigError(f"--ranks {ranks}: ranks share one run on this machine; give one seed, or --on ray.")
    if submit_if_asked(where, detach=detach):
        return
    require_place(where, configs[0].training.collection)
    if len(configs) == 1 and where.on == "local":
        _train_one(configs[0], options, settings, ranks_given=ranks is not None)
    else:
        train_seeds(configs, where, options, settings)


def _start(source: str | None, parts: str | None, normalisers: bool, on: str) -> StartingPoint | None:
    """The starting point that the options describe, if one is given."""
    from rl4sys.config import ConfigError
    from rl4sys.experiments.starting_point import StartingPoint

    if source is None:
        if parts is not None or normalisers:
            raise ConfigError("--parts and --normalisers say what to take over from a run or policy; give one: --from")
        return None
    if on != "local":
        raise ConfigError(f"--from {source} is on this machine; leave out --on {on}.")
    names = tuple(part.strip() for part in parts.split(",")) if parts is not None else ()
    return StartingPoint(source, names, normalisers)


def _train_one(config: ExperimentConfig, options: TrialOptions, settings: str | None, *, ranks_given: bool) -> None:
    """Train one run: in this process, on ranks that are started here, or as a rank that was started."""
    from rl4sys.cli.local_training import train_new
    from rl4sys.experiments.ranks import RankPlace

    place = RankPlace.from_environment(os.environ)
    if place is None and config.training.ranks == 1:
        train_new(config, options, settings)
        return
    from rl4sys.cli.rank_training import train_as_rank, train_ranks

    if place is None:
        train_ranks(config, options, settings)
    else:
        train_as_rank(place, config, options, settings, ranks_given=ranks_given)


def _show(configs: Sequence[ExperimentConfig], settings: str | None) -> None:
    import yaml

    from rl4sys.cli.output import report
    from rl4sys.experiments import check_combination

    check_combination(configs[0])
    if settings is not None:
        report(settings)
    documents = [config.model_dump(mode="json") for config in configs]
    typer.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True), nl=False)
    report(f"{len(configs)} run(s) {describe_place(configs[0].where)}; nothing was started.")


def _source(
    arguments: Sequence[str], algorithm: str | None, env: str | None
) -> tuple[Path | dict[str, object], list[str], str | None]:
    """The config file or values to start from, the overrides, and a line that says where the settings come from."""
    from rl4sys.config import ConfigError
    from rl4sys.environments import canonical_name
    from rl4sys.experiments import packaged_configs

    overrides = [argument for argument in arguments if "=" in argument]
    files = [argument for argument in arguments if "=" not in argument]
    if len(files) > 1:
        raise ConfigError(f"Got {len(files)} config files ({', '.join(files)}); give one.")
    if files:
        overrides += [f"algorithm.name={algorithm}"] if algorithm is not None else []
        overrides += [f"environment.name={env}"] if env is not None else []
        return Path(files[0]), overrides, None
    if algorithm is None or env is None:
        raise ConfigError(
            "Give a config file, or both --algorithm and --env: rl4sys train --algorithm ppo --env CartPole-v1"
        )
    env, note = _with_version(canonical_name(env))
    tuned = packaged_configs() / "experiments" / f"{algorithm.lower()}_{env.replace('/', '-')}.yaml"
    if tuned.is_file():
        return tuned, overrides, f"settings  {tuned.name}, tuned for {env}{note}"
    values: dict[str, object] = {"algorithm": {"name": algorithm}, "environment": {"name": env}}
    return values, overrides, f"settings  the defaults of {algorithm}: none are tuned for {env}{note}"


def _with_version(env: str) -> tuple[str, str]:
    """An environment that was given without its version, with the newest one, and a note about that."""
    from rl4sys.environments import newest_version

    newest = newest_version(env) if "-v" not in env and ":" not in env else None
    return (env, "") if newest is None else (newest, f", the newest version of {env}")


def _seeds(text: str | None) -> list[int]:
    from rl4sys.config import ConfigError

    if text is None:
        return []
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seed {text}: expected integers separated by commas, such as 1,2,3.") from None
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seed {text}: a seed is given twice; give each once.")
    return seeds
