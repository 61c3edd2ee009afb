"""`rl4sys check-env`: find out what is wrong with an environment before training in it."""

from __future__ import annotations

from typing import Annotated

import typer

from rl4sys.cli.options import Debug, Json


def check_env(
    name: Annotated[
        str,
        typer.Argument(metavar="ENV", help="The environment: CartPole-v1, my_module:MyEnv, dm_control/cheetah/run, …"),
    ],
    steps: Annotated[int, typer.Option(min=1, help="Random steps to take.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the environment and of the actions.")] = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Act at random in an environment, and print what is wrong with it and what to do.

    Checks what reset and step return, whether observations lie in their space, rewards, flags, and whether the same
    seed gives the same episode. The exit code is 1 if anything must be corrected.

    [bold]Examples[/]

      rl4sys check-env CartPole-v1

      rl4sys check-env my_module:MyEnv --steps 2000 --json
    """
    import sys
    from dataclasses import asdict

    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, show
    from rl4sys.environments import ENVIRONMENTS
    from rl4sys.environments.environment_check import check_environment
    from rl4sys.environments.making import make_environment

    # A module beside the working directory, as for `train`.
    sys.path.insert(0, "")
    config = ENVIRONMENTS.parse({"name": name})
    report = check_environment(lambda: make_environment(config.name, {}), steps, seed)
    if json:
        print_json({"environment": name, **asdict(report)})
    else:
        show(f"observation  {report.observation}")
        show(f"action       {report.action}")
        show(
            f"tried        {report.steps:,} steps, {report.episodes:,} episodes, {report.steps_per_second:,.0f} steps/s"
        )
        show(f"repeatable   {'yes' if report.is_repeatable else 'no'}")
        for problem in report.problems:
            show(f"problem      {problem}")
        for remark in report.remarks:
            show(f"note         {remark}")
        if not report.problems:
            show("no problems")
    if report.problems:
        raise typer.Exit(NO)
