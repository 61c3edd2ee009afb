"""A point between four goals: SQL learns paths to all of them, SAC to one or two. See README.md."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from types import FrameType

from findings import Findings
from plot import draw
from rich.console import Console
from rich.table import Table

from rl4sys.experiments import MetricRecord, Screen, Terminal
from side_by_side import CONFIGS, Plan, TrainingFailed, train

NAMES = ("east", "north", "west", "south")
_STOPPED = 130


def main() -> int:
    """Train, plot and count; returns the exit code."""
    plan = parse()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    plan.output.mkdir(parents=True)
    console = Console()
    try:
        with Screen(console) as screen:
            lines = {name: Terminal(screen, name, plan.steps) for name in plan.algorithms}

            def show(name: str, record: MetricRecord) -> None:
                lines[name].log(record)

            found = train(plan, show)
    except KeyboardInterrupt:
        console.print("Stopped; nothing is left running.")
        return _STOPPED
    except TrainingFailed as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    conclude(plan, found, console)
    return 0


def conclude(plan: Plan, found: dict[str, Findings], console: Console) -> None:
    """Write the plots, and count how often each goal was reached."""
    summary = {}
    table = Table("algorithm", *NAMES, "none", title=f"Goals reached in {plan.rollouts} rollouts", title_style="bold")
    for name, findings in found.items():
        counts = findings.counts()
        table.add_row(name, *map(str, counts), str(plan.rollouts - sum(counts)))
        plot = draw(f"{name.upper()} after {plan.steps:,} steps", findings, plan.output / f"{name}.png")
        summary[name] = {
            "goals": dict(zip(NAMES, counts, strict=True)),
            "reached": sum(counts),
            "plot": str(plot),
        }
    contents = {"steps": plan.steps, "seed": plan.seed, "rollouts": plan.rollouts, "algorithms": summary}
    (plan.output / "summary.json").write_text(json.dumps(contents, indent=1) + "\n")
    console.print(table)
    for each in (*(str(entry["plot"]) for entry in summary.values()), str(plan.output / "summary.json")):
        console.print(each, markup=False, soft_wrap=True)


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def parse() -> Plan:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python examples/multi_goal", description=__doc__)
    parser.add_argument("--algorithms", nargs="+", choices=list(CONFIGS), default=list(CONFIGS), help="default: both")
    parser.add_argument("--steps", type=int, default=15_000, help="environment steps of each; default 15000")
    parser.add_argument("--rollouts", type=int, default=100, help="episodes to draw and count; default 100")
    parser.add_argument("--seed", type=int, default=1, help="seed of training and rollouts; default 1")
    parser.add_argument("--output", type=Path, default=Path("multi_goal"), help="a new directory; default ./multi_goal")
    asked = parser.parse_args()
    if asked.steps < 1 or asked.rollouts < 1:
        parser.error(f"--steps and --rollouts are {asked.steps} and {asked.rollouts}; expected at least 1 of each")
    if asked.output.exists():
        parser.error(f"{asked.output} exists already; choose another directory with --output")
    return Plan(tuple(dict.fromkeys(asked.algorithms)), asked.steps, asked.seed, asked.rollouts, asked.output)


if __name__ == "__main__":
    sys.exit(main())
