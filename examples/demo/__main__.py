"""`make demo`: a training server and a Lunar Lander client learn in two processes, with a live display."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from display import Display, described
from history import SOLVED, History
from plot import draw
from processes import ChildFailed, client, training_server
from rich.console import Console
from rich.text import Text

EPISODES = 20
_STOPPED = 130
_OWN_LOAD = 1.5
"""The load that the demo itself adds."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How long to fly, and where to write the results."""

    steps: int
    seconds: float
    output: Path


def main() -> int:
    """Run the demo; returns the exit code."""
    plan = parse()
    console = Console()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    plan.output.mkdir(parents=True)
    console.print(
        Text(
            f"Starting a training server, and a client that flies 16 simulators with a copy of the policy: up to "
            f"{plan.steps:,} steps or {plan.seconds:.0f} s. Ctrl-C stops everything.\n"
        )
    )
    history = History()
    try:
        fly(plan, history, console)
    except KeyboardInterrupt:
        console.print("\nStopped. Server and client have ended; nothing is left running.")
        if history.episodes:
            console.print(Text(f"Plot so far: {draw(history, plan.output / 'learning.png')}"), soft_wrap=True)
        return _STOPPED
    except ChildFailed as error:
        console.print(Text(f"error: {error}\nLogs are in {plan.output}."), soft_wrap=True)
        return 1
    conclude(plan, history, console)
    return 0


def fly(plan: Plan, history: History, console: Console) -> None:
    """Start both processes and display the messages of the client until it has finished."""
    with (
        tempfile.TemporaryDirectory(prefix="rl4sys-demo-") as data,
        training_server(Path(data), plan.output / "server.log") as address,
        client(_arguments(plan, address), plan.output / "client.log") as lines,
        (plan.output / "history.jsonl").open("w") as lines_written,
        Display(console, plan.steps) as display,
    ):
        for message in lines:
            lines_written.write(json.dumps(message) + "\n")
            history.add(message)
            if message["kind"] == "flight":
                display.show(history)


def _arguments(plan: Plan, address: str) -> list[str]:
    options = {
        "--server": address,
        "--policy": str(plan.output / "policy"),
        "--steps": str(plan.steps),
        "--seconds": str(plan.seconds),
        "--episodes": str(EPISODES),
    }
    return [word for pair in options.items() for word in pair]


def conclude(plan: Plan, history: History, console: Console) -> None:
    """Print the results, where they are, and what to do next."""
    plot = draw(history, plan.output / "learning.png")
    last, returns = history.reports[-1], history.evaluation
    mean, landed = sum(returns) / len(returns), sum(value >= SOLVED for value in returns)
    deviation = (sum((value - mean) ** 2 for value in returns) / len(returns)) ** 0.5
    words, times = described(last), history.latency
    results = {
        f"return over {len(returns)} fresh episodes": f"{mean:.0f} ± {deviation:.0f} (greedy); {assessment(mean)}",
        f"safe landings (return ≥ {SOLVED:.0f})": f"{landed} of {len(returns)}",
        "while learning": f"{words['return']} at the end, exploring",
        "experience": f"{last.steps:,} steps in {last.seconds:.0f} s, {len(history.episodes):,} episodes",
        "decisions": f"{times['median']:.1f} µs median, {times['p99']:.0f} µs p99, with {history.runtime}",
        "versions received": f"{last.versions}",
        "network": words["network"],
        "client": words["client"],
        "server": words["server"],
        "machine": machine(),
        "plot": str(plot),
        "policy": str(plan.output / "policy" / "demo-lander.policy"),
    }
    (plan.output / "summary.json").write_text(
        json.dumps({"mean_return": mean, "landings": landed, "episodes": len(returns), "steps": last.steps}) + "\n"
    )
    console.rule("[bold]Done")
    for name, text in results.items():
        console.print(Text(f"{name:<31}{text}"), soft_wrap=True)
    console.print(
        Text(
            f"\nNext:  .venv/bin/python examples/demo/evaluation.py {results['policy']}\n"
            f"       examples/lunar_lander/README.md    your own server and client, in two terminals\n"
            f"       examples/demo/client.yaml          change something, and run the demo again"
        ),
        soft_wrap=True,
    )


def assessment(mean: float) -> str:
    """What a mean return says about the policy."""
    if mean >= SOLVED:
        return "it lands"
    if mean >= 0.0:
        return "it hovers and sometimes lands; more --steps would help"
    return "it has not learned to land; more --steps would help"


def machine() -> str:
    """Cores and load of this machine: on a busy one, times mean little."""
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    others = "; busy with other work, so times mean little" if load > cores + _OWN_LOAD else ""
    return f"{cores} cores, load {load:.1f}{others}"


def parse() -> Plan:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="examples/demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=600_000, help="to fly at most (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=180.0, help="to fly at most (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="20,000 steps: shows how it works, learns little")
    parser.add_argument("--output", type=Path, help="directory to make (default: runs/demo-TIME)")
    given = parser.parse_args()
    output = given.output or Path("runs") / f"demo-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    if output.exists():
        parser.error(f"{output} exists already; give another --output.")
    return Plan(20_000 if given.quick else given.steps, given.seconds, output)


def _stop(number: int, frame: FrameType | None) -> None:
    """Treat every signal that stops the demo like Ctrl-C, even if a shell had made it ignore SIGINT."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
