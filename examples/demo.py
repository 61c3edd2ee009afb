"""Trains PPO on LunarLander for about a minute, live, then evaluates it and draws its learning curve."""

from __future__ import annotations

import logging

from rich.console import Console

from rl4sys.experiments import Run, Screen, Terminal, load_experiment, plot

EPISODES = 20


def main() -> None:
    """The whole of the demo."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    console = Console()
    config = load_experiment("demo_lunar_lander.yaml")
    run = Run.create(config)
    grade = run.components.grade
    console.rule("[bold]RL4Sys: PPO learns to land")
    console.print(
        f"{config.environment.name}, {config.environment.num_envs} environments, "
        f"{config.training.total_timesteps:,} steps, on {run.components.device} with {run.threads} thread(s); "
        f"a second process collects while this one learns.",
        highlight=False,
    )
    console.print(f"Exactness {grade.name}: {grade.value}\n", highlight=False)
    with Screen(console) as screen:
        result = run.train([Terminal(screen, "landing", config.training.total_timesteps)])
    outcome = run.evaluate(EPISODES, seed=1)
    picture = plot([run.directory], run.directory.path / "learning_curve.png", "rollout/return")
    landed = sum(value >= 200 for value in outcome.returns)
    console.rule("[bold]Done")
    console.print(
        f"return over {EPISODES} fresh episodes  {outcome.mean:.0f} ± {outcome.deviation:.0f}", highlight=False
    )
    console.print(f"safe landings (return ≥ 200)   {landed} of {EPISODES}", highlight=False)
    console.print(f"time                           {result.seconds:.0f} s", highlight=False)
    for what, where in {
        "learning curve": picture,
        "run": run.directory.path,
        "policy": run.directory.policies / "best",
    }.items():
        console.print(f"{what:<30} {where}", highlight=False, soft_wrap=True)
    console.print(f"\nNext:  .venv/bin/rl4sys evaluate {run.directory.path}", highlight=False, soft_wrap=True)
    console.print("       .venv/bin/rl4sys train --algorithm dqn --env CartPole-v1", highlight=False)


if __name__ == "__main__":
    main()
