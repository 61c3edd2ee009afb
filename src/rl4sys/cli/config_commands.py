"""`rl4sys config`: show and compare configs, write their JSON schema, migrate old ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.completion import experiments_and_runs
from rl4sys.cli.options import Debug, Json, Runs

if TYPE_CHECKING:
    from rl4sys.config import Config

config = typer.Typer(
    name="config",
    no_args_is_help=True,
    help="Show or compare resolved configs, write their JSON schema, or migrate old files.",
    rich_markup_mode="rich",
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG|RUN",
        autocompletion=experiments_and_runs,
        help="A config file, the name of one that ships with RL4Sys, or a run.",
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", show_default=False, help="Settings to override.")
]


@config.command()
def show(
    source: Source,
    overrides: Overrides = None,
    given: Annotated[bool, typer.Option("--given", help="Leave out defaults.")] = False,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show every setting of a config as `train` would use it, and where it comes from.

    [bold]Examples[/]

      rl4sys config show ppo_cartpole.yaml

      rl4sys config show my.yaml algorithm.lr=1e-3 --given

      rl4sys config show ppo-CartPole-v1-seed0 --json
    """
    from rl4sys.cli.output import print_json, print_table
    from rl4sys.config import flat
    from rl4sys.config.errors import shown
    from rl4sys.experiments import load_with_origins

    resolved, origins = load_with_origins(_found(source, runs), overrides or [])
    values = resolved.model_dump(mode="json")
    if json:
        print_json({"config": values, "origins": origins})
        return
    rows = []
    for place, value in flat(values):
        key = ".".join(place)
        if not given or origins[key] != "default":
            rows.append([key, shown(value), _short(origins[key])])
    print_table(("key", "value", "from"), rows)


@config.command()
def diff(first: Source, second: Source, runs: Runs = Path("runs"), json: Json = False, debug: Debug = False) -> None:
    """Show the settings that differ between two configs or runs, including defaults.

    The exit code is 0 if they are equal, 1 if they differ, and 2 if one of them cannot be read.

    [bold]Examples[/]

      rl4sys config diff ppo_CartPole-v1.yaml my.yaml

      rl4sys config diff ppo-CartPole-v1-seed0 ppo-CartPole-v1-seed1 --json
    """
    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.config import flat
    from rl4sys.experiments import load_experiment

    sides = [
        {".".join(place): value for place, value in flat(load_experiment(_found(source, runs)).model_dump(mode="json"))}
        for source in (first, second)
    ]
    keys = [key for key in dict.fromkeys([*sides[0], *sides[1]]) if _differs(sides, key)]
    if json:
        print_json({key: [side.get(key) for side in sides] for key in keys})
    elif keys:
        print_table(("key", first, second), [[key, *_shown_pair(sides, key)] for key in keys])
    else:
        report("the configs are equal")
    if keys:
        raise typer.Exit(NO)


@config.command()
def schema(
    kind: Annotated[str, typer.Option(help="experiment, server, sweep or tuning.")] = "experiment",
    plugins: Annotated[
        list[str] | None, typer.Option("--plugin", help="A file or module whose components to include.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file instead of standard output.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the JSON schema of configs, which editors use to complete and check keys.

    [bold]Examples[/]

      rl4sys config schema --output rl4sys.schema.json

      rl4sys config schema --kind server

      rl4sys config schema --plugin my_algorithm.py
    """
    import json

    from rl4sys.cli.output import show as say
    from rl4sys.config import json_schema, load_plugins
    from rl4sys.experiments import load_entry_points

    described = _described(kind)
    load_plugins(plugins or (), relative_to=Path.cwd())
    load_entry_points()
    text = json.dumps(json_schema(described), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    say(f"wrote {output}")


@config.command()
def migrate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Config files of experiments.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be written.")] = False,
    debug: Debug = False,
) -> None:
    """Rewrite old config files in the current format. The old file is kept beside the new one, with its comments.

    Old files also load without this: they are migrated each time they are read. Each file is migrated by itself; files
    that it `extends` are not changed.

    [bold]Examples[/]

      rl4sys config migrate my.yaml --dry-run

      rl4sys config migrate experiments/*.yaml
    """
    from rl4sys.cli.output import show as say
    from rl4sys.config.migrations import migrated, rewrite

    for file in files:
        change = migrated(file)
        if not change.is_needed:
            say(f"{file} already has version {change.version}")
        elif dry_run:
            typer.echo(change.text, nl=False)
        else:
            backup = rewrite(change)
            say(f"{file} now has version {change.version}; the old file is {backup}")


def _found(source: str, runs: Path) -> Path:
    """The config of a file, of the name of a shipped one, or of a run."""
    from rl4sys.cli.output import report
    from rl4sys.config import ConfigError, packaged_configs
    from rl4sys.experiments import RunDirectory
    from rl4sys.run_finder import RunNotFound, find_newest

    path = Path(source)
    shipped = packaged_configs()
    if path.is_file() or any((place / path).is_file() for place in (shipped, shipped / "experiments")):
        return path
    if path.suffix in (".yaml", ".yml", ".json"):
        # Loading it reports where it was searched for, with a suggestion.
        return path
    try:
        return RunDirectory(find_newest(source, runs, lambda note: report(f"note: {note}"))).config
    except RunNotFound as error:
        raise ConfigError(f"{error} A config file has a name that ends in .yaml, .yml or .json.") from None


def _described(kind: str) -> type[Config]:
    from rl4sys.config import ConfigError
    from rl4sys.experiments import ExperimentConfig
    from rl4sys.laboratory.studies.config import TuneConfig
    from rl4sys.laboratory.sweeps.plan import SweepConfig
    from rl4sys.server.config import ServerConfig
    from rl4sys.suggestions import did_you_mean

    kinds: dict[str, type[Config]] = {
        "experiment": ExperimentConfig,
        "server": ServerConfig,
        "sweep": SweepConfig,
        "tuning": TuneConfig,
    }
    if kind not in kinds:
        hint = did_you_mean(kind, kinds) or f"; expected one of {', '.join(kinds)}"
        raise ConfigError(f"--kind {kind}: there is no such config{hint}")
    return kinds[kind]


def _differs(sides: list[dict[str, Any]], key: str) -> bool:
    return any(key not in side for side in sides) or sides[0][key] != sides[1][key]


def _shown_pair(sides: list[dict[str, Any]], key: str) -> list[str]:
    """Both values as in YAML, a dash where there is no such key."""
    from rl4sys.config.errors import shown

    return [shown(side[key]) if key in side else "–" for side in sides]


def _short(origin: str) -> str:
    """A path relative to the working directory or to the shipped configs."""
    from rl4sys.config import packaged_configs

    path = Path(origin)
    for place in (Path.cwd(), packaged_configs()):
        if path.is_absolute() and path.is_relative_to(place):
            return str(path.relative_to(place))
    return origin
