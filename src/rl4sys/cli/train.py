"""`rl4sys train`: from a config to a trained run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
import yaml
from rich.table import Table

from rl4sys.cli.output import console, errors
from rl4sys.config import ConfigError
from rl4sys.experiments import (
    ExperimentConfig,
    Run,
    RunDirectory,
    Terminal,
    load_experiment,
    packaged_configs,
    plot,
)

EXAMPLES = """
[bold]Examples[/]

  rl4sys train configs/experiments/ppo_cartpole.yaml

  rl4sys train my.yaml algorithm.lr=1e-3 training.total_timesteps=1e6

  rl4sys train --algorithm ppo --env LunarLander-v3 --seed 1,2,3 --jobs 2

  rl4sys train my.yaml --dry-run          [dim](show the resolved config, run nothing)[/]
"""


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CONFIG.yaml] [KEY=VALUE]...", help="A config file and overrides."),
    ] = None,
    algorithm: Annotated[str | None, typer.Option(help="Algorithm, when there is no config file.")] = None,
    env: Annotated[str | None, typer.Option(help="Environment id, when there is no config file.")] = None,
    seed: Annotated[str | None, typer.Option(help="One seed, or several: 1,2,3.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Seeds to run at the same time.")] = 1,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the resolved config and run nothing.")] = False,
    allow_fallback: Annotated[
        bool, typer.Option("--allow-fallback", help="Go on without a missing GPU or logger, and say so.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Verbose logs and full tracebacks.")] = False,
) -> None:
    """Train a policy as a config says."""
    source, overrides = _source(arguments or [], algorithm, env)
    if name is not None:
        overrides.append(f"experiment.name={json.dumps(name)}")
    seeds = _seeds(seed)
    if not seeds:
        configs = [load_experiment(source, overrides)]
    else:
        configs = [load_experiment(source, [*overrides, f"experiment.seed={s}"]) for s in seeds]
    if dry_run:
        for config in configs:
            console.print(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False), markup=False, soft_wrap=True)
        console.print(f"{len(configs)} run(s); nothing was started.")
        return
    if len(configs) == 1:
        finish(run_here(configs[0], allow_fallback=allow_fallback))
        return
    if jobs == 1:
        directories = [run_here(config, allow_fallback=allow_fallback) for config in configs]
    else:
        directories = _run_in_parallel(configs, jobs, allow_fallback=allow_fallback)
    _summarize(directories)


train.__doc__ = f"{train.__doc__}\n{EXAMPLES}"


def run_here(config: ExperimentConfig, *, allow_fallback: bool) -> RunDirectory:
    """Train one run in this process, with a display; an interruption leaves a checkpoint to resume from."""
    config = _without_missing_loggers(config, allow_fallback=allow_fallback)
    run = Run.create(config, allow_fallback=allow_fallback)
    announce(run)
    conduct(run)
    return run.directory


def announce(run: Run) -> None:
    """Say where the run lives and what was chosen for it."""
    components = run.components
    errors.print(f"run       {run.directory.path}", highlight=False, soft_wrap=True)
    errors.print(f"device    {components.device}, {run.threads} thread(s)", highlight=False)
    errors.print(f"exactness {components.grade.name}: {components.grade.value}", highlight=False, soft_wrap=True)


def conduct(run: Run) -> None:
    """Train until the end or the first Ctrl-C; the second one kills."""
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if stopping:
            raise KeyboardInterrupt
        stopping.append(number)
        errors.print("stopping after this turn; once more to stop at once")

    handlers = {s: signal.signal(s, stop) for s in (signal.SIGINT, signal.SIGTERM)}
    display = (
        [Terminal(errors, run.config.name, run.config.training.total_timesteps)] if run.config.logging.terminal else []
    )
    try:
        result = run.train(display, stop=lambda: bool(stopping))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if not result.finished:
        errors.print(
            f"interrupted at step {result.steps:,}; go on with: rl4sys resume {run.directory.path}",
            soft_wrap=True,
        )
        raise typer.Exit(130)


def finish(directory: RunDirectory) -> None:
    picture = _picture([directory], directory.path / "learning_curve.png")
    result = json.loads(directory.result.read_bytes())
    console.print(f"final evaluation  {result['evaluation']:.1f}   best {result['best']:.1f}", highlight=False)
    console.print(f"steps             {result['steps']:,} in {result['seconds']:.0f} s", highlight=False)
    console.print(f"run               {directory.path}", highlight=False, soft_wrap=True)
    if picture:
        console.print(f"learning curve    {picture}", highlight=False, soft_wrap=True)
    console.print(f"evaluate it with  rl4sys evaluate {directory.path}", highlight=False, soft_wrap=True)


def _summarize(directories: Sequence[RunDirectory]) -> None:
    table = Table("run", "steps", "final", "best")
    for directory in directories:
        result = json.loads(directory.result.read_bytes())
        table.add_row(
            str(directory.path),
            f"{result['steps']:,}",
            f"{result['evaluation']:.1f}",
            f"{result['best']:.1f}",
        )
    console.print(table)
    picture = _picture(directories, directories[0].path.parent / f"{load_experiment(directories[0].config).name}.png")
    if picture:
        console.print(f"learning curve    {picture}", highlight=False, soft_wrap=True)


def _picture(directories: Sequence[RunDirectory], output: Path) -> Path | None:
    try:
        return plot(directories, output, "evaluation/return")
    except (OSError, ValueError) as error:
        errors.print(f"no picture: {error}", soft_wrap=True)
        return None


def _run_in_parallel(configs: Sequence[ExperimentConfig], jobs: int, *, allow_fallback: bool) -> list[RunDirectory]:
    """Each run in a process of its own, a few at a time."""
    waiting, done = list(configs), []
    running: dict[subprocess.Popen[str], ExperimentConfig] = {}
    failures = []
    while waiting or running:
        while waiting and len(running) < jobs:
            config = waiting.pop(0)
            process = _spawn(config, allow_fallback=allow_fallback)
            running[process] = config
            errors.print(f"started {config.name}, seed {config.experiment.seed}", highlight=False)
        time.sleep(0.2)
        for process in [p for p in running if p.poll() is not None]:
            config = running.pop(process)
            output, complaint = process.communicate()
            if process.returncode:
                failures.append(
                    f"seed {config.experiment.seed}: {complaint.strip().splitlines()[-1] if complaint else '?'}"
                )
                errors.print(f"failed  {config.name}, seed {config.experiment.seed}", highlight=False)
            else:
                done.append(RunDirectory(Path(output.strip().splitlines()[-1])))
                errors.print(f"done    {config.name}, seed {config.experiment.seed}", highlight=False)
    if failures:
        raise SeedsFailed(f"{len(failures)} of {len(configs)} runs failed:\n  " + "\n  ".join(failures))
    return sorted(done, key=lambda directory: str(directory.path))


class SeedsFailed(RuntimeError):
    """Some of several runs failed; the others are finished."""


def _spawn(config: ExperimentConfig, *, allow_fallback: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rl4sys.cli.one_run", *(["--allow-fallback"] if allow_fallback else [])]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    process.stdin.write(config.model_dump_json())
    process.stdin.close()
    process.stdin = None
    return process


def _without_missing_loggers(config: ExperimentConfig, *, allow_fallback: bool) -> ExperimentConfig:
    if not config.logging.wandb.enabled:
        return config
    try:
        import wandb  # noqa: F401  # is it there?
    except ImportError:
        if not allow_fallback:
            raise ConfigError(
                "logging.wandb.enabled: Weights & Biases is not installed. Install it with "
                "`pip install 'rl4sys[wandb]'`, or go on with logging.wandb.enabled=false (or --allow-fallback)."
            ) from None
        errors.print("Weights & Biases is not installed: going on without it.")
    return config


def _source(
    arguments: Sequence[str], algorithm: str | None, env: str | None
) -> tuple[Path | dict[str, object], list[str]]:
    overrides = [argument for argument in arguments if "=" in argument]
    files = [argument for argument in arguments if "=" not in argument]
    if len(files) > 1:
        raise ConfigError(f"Got {len(files)} config files ({', '.join(files)}); one at a time, please.")
    if files:
        if algorithm is not None:
            overrides.append(f"algorithm.name={algorithm}")
        if env is not None:
            overrides.append(f"environment.name={env}")
        return Path(files[0]), overrides
    if algorithm is None or env is None:
        raise ConfigError(
            "Give a config file, or both --algorithm and --env: rl4sys train --algorithm ppo --env CartPole-v1"
        )
    tuned = packaged_configs() / "experiments" / f"{algorithm.lower()}_{env.replace('/', '-')}.yaml"
    if tuned.is_file():
        errors.print(f"tuned settings from {tuned.name}", highlight=False)
        return tuned, overrides
    errors.print(f"no tuned settings for {algorithm} on {env}: using the algorithm's defaults", highlight=False)
    return {"algorithm": {"name": algorithm}, "environment": {"name": env}}, overrides


def _seeds(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--seed {text}: expected whole numbers separated by commas, such as 1,2,3.") from None
