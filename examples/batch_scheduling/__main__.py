"""Batch scheduling: compare heuristics and learned policies on a trace of jobs.

Examples, from the top of the repository:

  python -m examples.batch_scheduling generate --out jobs.swf.gz
  python -m examples.batch_scheduling compare --trace jobs.swf.gz --protocol wait
  python -m examples.batch_scheduling live --trace jobs.swf.gz --max-wait 172800
  python -m examples.batch_scheduling compare --trace theta.swf.gz --protocol commit --heuristics fcfs f1 --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from rl4sys.environments.scheduling import (
    HEURISTICS,
    PROTOCOLS,
    TraceUnreadable,
    UnknownHeuristic,
    Workload,
    WorkloadTooShort,
    generate,
    heuristic,
    read_swf,
    write_swf,
)
from rl4sys.environments.scheduling.workload import PARTS

from .comparison import BASELINE, Rival, UnsuitablePolicy, compare, heuristic_rivals, summary
from .plots import draw_gantt, draw_live, draw_slowdowns
from .table import comparison_table

_WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was asked for; returns the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.command(asked))
    except (TraceUnreadable, WorkloadTooShort, UnknownHeuristic, UnsuitablePolicy) as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG_INPUT


def _compare(asked: argparse.Namespace) -> int:
    for name in asked.heuristics:
        heuristic(name)
    jobs = _jobs(asked)
    sequences = jobs.sequences(asked.sequences, asked.length, np.random.default_rng(asked.seed))
    rivals = heuristic_rivals(asked.protocol, asked.heuristics, asked.keep_free)
    rivals += [_learned(each, number, asked) for number, each in enumerate(asked.policy, 1)]
    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("scheduling", total=len(rivals) * len(sequences))
        scores = compare(rivals, sequences, lambda: progress.advance(task))
    base = next(score for score in scores if score.name == BASELINE)
    found = [summary(score, base, np.random.default_rng(asked.seed)) for score in scores]
    name = asked.trace.name if asked.trace else "generated jobs"
    title = f"{name}, {asked.part}, {asked.protocol}: {asked.sequences} × {asked.length} jobs"
    asked.out.mkdir(parents=True, exist_ok=True)
    plots = {"slowdowns": asked.out / "slowdowns.png", "gantt": asked.out / "gantt.png"}
    draw_slowdowns(title, scores, plots["slowdowns"])
    shown = sequences[_typical(base.slowdown)]
    upper, lower = _two(rivals, min(found, key=lambda each: each["slowdown"])["name"])
    above, below = ((rival.name, rival.run([shown], lambda: None)[0]) for rival in (upper, lower))
    draw_gantt(above, below, plots["gantt"])
    if asked.policy and (learning := _learning_curve(asked)) is not None:
        plots["learning"] = learning
    if asked.json:
        settings = {name: getattr(asked, name) for name in ("protocol", "part", "sequences", "length", "seed")}
        trace = str(asked.trace) if asked.trace else None
        files = {name: str(path) for name, path in plots.items()}
        print(json.dumps({"trace": trace, **settings, "rules": found, "plots": files}, indent=1))
        return 0
    console = Console()
    console.print(comparison_table(title, found))
    for path in plots.values():
        console.print(str(path), markup=False, soft_wrap=True, highlight=False)
    return 0


def _typical(slowdown: np.ndarray) -> int:
    """The sequence on which the baseline's slowdown is nearest to its upper quartile: one with something to gain."""
    return int(np.argmin(np.abs(slowdown - np.quantile(slowdown, 0.75))))


def _two(rivals: list[Rival], best: str) -> tuple[Rival, Rival]:
    """The heuristic above and the rule below it: a learned one if there is one, else the best that is not SJF."""
    upper = next(rival for rival in rivals if rival.name == BASELINE)
    learned = [rival for rival in rivals if rival.learned]
    others = [rival for rival in rivals if rival.name == best and rival is not upper] or rivals[1:] or rivals
    return upper, (learned or others)[0]


def _learned(path: str, number: int, asked: argparse.Namespace) -> Rival:
    # Only here are torch and pydantic needed.
    from .learned import learned_rival

    name = "learned" if len(asked.policy) == 1 else f"learned {number}"
    return learned_rival(name, path, asked.protocol, asked.max_wait)


def _learning_curve(asked: argparse.Namespace) -> Path | None:
    from .learned import draw_learning

    return draw_learning(asked.policy, asked.out / "learning.png")


def _jobs(asked: argparse.Namespace) -> Workload:
    """The part of the trace that was asked for, or of a generated workload."""
    if asked.trace is None:
        jobs = generate(10_000, asked.processors or 256, np.random.default_rng(0))
    else:
        jobs = read_swf(asked.trace, asked.processors).jobs
    return jobs if asked.part == "all" else jobs.part(asked.part)


def _live(asked: argparse.Namespace) -> int:
    # Only here is a server needed.
    from .live import CLIENTS, ClientReport, LiveFailed, learn_live

    environment = {name: getattr(asked, name) for name in ("protocol", "length", "mix", "most", "max_wait")}
    environment |= {"trace": str(asked.trace.resolve()) if asked.trace else None}
    # Refused here, in one sentence, rather than in two clients.
    _jobs(asked).sequences(1, asked.length, np.random.default_rng(0))
    out = asked.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    errors = Console(stderr=True)
    with Progress(console=errors, disable=not errors.is_terminal) as progress:
        tasks = {name: progress.add_task(name, total=asked.decisions) for name in CLIENTS}

        def show(name: str, report: ClientReport) -> None:
            words = f"{name}: version {report.version}, {np.median(report.relative[-20:] or np.nan):.2f} × sjf"
            progress.update(tasks[name], completed=report.decisions, description=words)

        try:
            reports = learn_live(environment, asked.decisions, asked.buffer, out, show)
        except LiveFailed as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    picture = out / "live.png"
    draw_live({name: report.relative for name, report in reports.items()}, picture)
    found = {name: report.json_values() for name, report in reports.items()}
    if asked.json:
        print(json.dumps({"clients": found, "plot": str(picture)}, indent=1))
        return 0
    for name, each in found.items():
        print(
            f"{name}: {each['decisions']:,} decisions, {each['guarded']:,} by the guard, version {each['version']}; "
            f"slowdown relative to sjf, median of 20 sequences: {each['first']:.2f} at first, {each['latest']:.2f} now"
        )
    print(picture)
    return 0


def _generate(asked: argparse.Namespace) -> int:
    kinds = ("batch", "interactive") if asked.types else ("typeless",)
    jobs = generate(asked.jobs, asked.processors, np.random.default_rng(asked.seed), kinds)
    write_swf(jobs, asked.out)
    load = float((jobs.run * jobs.needed).sum()) / (jobs.processors * float(np.ptp(jobs.submit) or 1.0))
    print(f"{asked.out}: {len(jobs)} jobs for {jobs.processors} processors, load {load:.2f}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.batch_scheduling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    known = "; ".join(f"{name}: {each.meaning}" for name, each in HEURISTICS.items())
    compared = commands.add_parser(
        "compare",
        help="table, box plot and Gantt chart of rules on the same sequences",
        description="Schedules random sequences of a trace by several rules, and compares what came of it.",
        epilog=f"Heuristics, the lowest score first (s submit time, r requested time, n processors, w waited): {known}",
    )
    compared.add_argument("--trace", type=Path, help="a trace (SWF, plain or .gz); default: 10,000 generated jobs")
    compared.add_argument("--processors", type=_positive, help="size of the machine; default: as the trace says")
    compared.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default="wait",
        help="commit: a picked job blocks until it fits; backfill, easy: others may overtake it meanwhile; "
        "wait (default): start a job that fits, or none",
    )
    compared.add_argument("--heuristics", nargs="*", default=[], metavar="NAME", help="only these, beside sjf")
    compared.add_argument(
        "--keep-free", nargs="*", type=_positive, default=[16], metavar="K", help="by wait: SJF that keeps K free"
    )
    compared.add_argument("--policy", nargs="*", default=[], metavar="RUN", help="runs or policy files to compare too")
    compared.add_argument(
        "--max-wait", type=float, metavar="SECONDS", help="guard of learned policies: start a job that waited longer"
    )
    compared.add_argument("--part", choices=("all", *PARTS), default="test", help="which jobs; default: the last 20 %%")
    compared.add_argument("--sequences", type=_positive, default=200, help="how many; default 200")
    compared.add_argument("--length", type=_positive, default=256, help="jobs of each; default 256")
    compared.add_argument("--seed", type=int, default=0, help="which sequences; default 0")
    compared.add_argument("--out", type=Path, default=Path("batch_scheduling"), help="directory of the plots")
    compared.add_argument("--json", action="store_true", help="print JSON, times in seconds")
    compared.set_defaults(command=_compare)
    live = commands.add_parser(
        "live",
        help="learn through a training server, with two clients that share a policy",
        description="Starts a training server on this machine and two clients with four simulated clusters each, whose "
        "decisions train one policy; each gets the new versions while it runs.",
    )
    live.add_argument("--trace", type=Path, help="a trace (SWF, plain or .gz); default: 10,000 generated jobs")
    live.add_argument("--protocol", choices=PROTOCOLS, default="commit", help="default commit")
    live.add_argument("--mix", type=float, default=0.0, help="share of waiting time in the cost; default 0")
    live.add_argument("--most", type=_positive, default=64, help="candidates at most; default 64")
    live.add_argument("--length", type=_positive, default=128, help="jobs of a sequence; default 128")
    live.add_argument("--max-wait", type=float, metavar="SECONDS", help="guard: start a job that waited longer")
    live.add_argument("--decisions", type=_positive, default=40_000, help="of each client; default 40000")
    live.add_argument("--buffer", type=_positive, default=4096, help="decisions of each update; default 4096")
    live.add_argument("--out", type=Path, default=Path("batch_scheduling_live"), help="directory of server and logs")
    live.add_argument("--json", action="store_true", help="print JSON")
    live.set_defaults(command=_live, part="training", processors=None)
    made = commands.add_parser(
        "generate",
        help="write a trace of generated jobs",
        description="Draws jobs from the model of Lublin and Feitelson, and writes them as a trace (SWF).",
    )
    made.add_argument("--jobs", type=_positive, default=10_000, help="how many; default 10000")
    made.add_argument("--processors", type=_positive, default=256, help="size of the machine; default 256")
    made.add_argument("--types", action="store_true", help="batch and interactive jobs instead of typeless ones")
    made.add_argument("--seed", type=int, default=0, help="default 0")
    made.add_argument("--out", type=Path, default=Path("jobs.swf.gz"), help="default jobs.swf.gz")
    made.set_defaults(command=_generate)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
