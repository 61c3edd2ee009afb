"""A live load balancer that learns where to send requests.

Examples, from the top of the repository:

  python -m examples.load_balancer live                       # five minutes of learning, then a comparison
  python -m examples.load_balancer live --chaos --seconds 120 --blocks 20
  python -m examples.load_balancer simulate                   # the rules alone, in seconds
  python -m examples.load_balancer simulate --policy runs/ppo_load_balancing-seed0-…
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from rl4sys.client import ConnectError
from rl4sys.environments.balancing.requests import RATE
from rl4sys.environments.balancing.rules import BASELINE, RULES

from .live import EXPLORING, LiveResult, LiveSettings, run_live
from .plots import draw_live, draw_simulated
from .policy_choosers import PolicyChoosers
from .processes import ProcessEnded
from .proxy import Proxy
from .simulated import UnsuitablePolicy, simulate_all
from .switchback import RuleReport

_WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that was asked for; returns the exit code."""
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.command(asked))
    except (ProcessEnded, UnsuitablePolicy, ConnectError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _WRONG_INPUT


def _live(asked: argparse.Namespace) -> int:
    settings = LiveSettings(
        asked.rules, asked.seconds, asked.blocks, asked.rate, asked.chaos, asked.seed, asked.out, asked.kill_server
    )
    errors = Console(stderr=True)
    with Live(console=errors, auto_refresh=False, transient=True) as live:

        def show(proxy: Proxy, rule: str, policy: PolicyChoosers) -> None:
            live.update(_state(proxy, rule, policy), refresh=True)

        result = run_live(settings, show)
    picture = draw_live(result.at, result.latencies, asked.seconds, result.reports, asked.out / "live.png")
    values = {
        "rules": [asdict(report) for report in result.reports],
        "failed_requests": result.failed,
        "guard": result.guard,
        "version": result.version,
        "simulation": _validation(result),
        "load_average": os.getloadavg(),
        "plot": str(picture),
    }
    (asked.out / "live.json").write_text(json.dumps(values, indent=1) + "\n")
    if asked.json:
        print(json.dumps(values, indent=1))
        return 0
    Console().print(_comparison(result.reports))
    print(f"{len(result.at):,} requests, {result.failed} failed; version {result.version}; guard {result.guard}")
    print(_validation_line(values["simulation"]))
    print(f"wrote {picture}")
    return 0


def _simulate(asked: argparse.Namespace) -> int:
    found = simulate_all(asked.policy, asked.rate, asked.seconds, asked.seeds, chaos=asked.chaos)
    title = f"simulated, {'chaos' if asked.chaos else 'steady'}, {asked.rate:.0f} requests/s, {asked.seeds} seeds"
    picture = draw_simulated(title, {each.rule: each.sample for each in found}, asked.out / "simulated.png")
    if asked.json:
        print(json.dumps({"rules": [each.json_values() for each in found], "plot": str(picture)}, indent=1))
        return 0
    table = Table("rule", "mean ms", "p99 ms", "mean ratio", "p99 ratio", "worst p99 ratio", title=title)
    for each in found:
        ratios = (f"{number:.2f}" for number in (each.mean_ratio, each.p99_ratio, each.worst_p99_ratio))
        table.add_row(each.rule, f"{each.mean * 1e3:.1f}", f"{each.p99 * 1e3:.0f}", *ratios)
    Console().print(table)
    print(f"ratios are relative to {BASELINE} with the same requests; wrote {picture}")
    return 0


def _state(proxy: Proxy, rule: str, policy: PolicyChoosers) -> Table:
    """What happens at present."""
    health = policy.health
    table = Table("backend", "in flight", "estimated speed", "latency ms", title=f"deciding: {rule}")
    for number, view in enumerate(proxy.views):
        table.add_row(str(number), str(view.in_flight), f"{view.speed:.2f}", f"{view.latency * 1e3:.0f}")
    failed = sum(proxy.failed.values())
    connected = "connected" if health.connected else "not connected"
    table.caption = (
        f"{proxy.passed:,} requests, {failed} failed; version {health.version}, {connected}; guard {policy.counts()}"
    )
    return table


def _comparison(reports: Sequence[RuleReport]) -> Table:
    table = Table("rule", "blocks", "requests", "mean ms", "p99 ms", "mean ratio", "p99 ratio")
    for report in reports:
        ratios = (
            f"{each.value:.2f} ({each.low:.2f} to {each.high:.2f})" for each in (report.mean_ratio, report.p99_ratio)
        )
        cells = (f"{report.requests:,}", f"{report.mean * 1e3:.1f}", f"{report.p99 * 1e3:.0f}")
        table.add_row(report.rule, str(report.blocks), *cells, *ratios)
    return table


def _validation(result: LiveResult) -> dict[str, float]:
    """The baseline, live and in the simulation with the same requests; seconds."""
    live = next(report for report in result.reports if report.rule == BASELINE)
    simulated = result.simulated
    return {
        "live_mean": live.mean,
        "simulated_mean": simulated.mean,
        "mean_ratio": live.mean / simulated.mean,
        "live_p99": live.p99,
        "simulated_p99": simulated.quantile(0.99),
    }


def _validation_line(found: Mapping[str, float]) -> str:
    means = f"{found['live_mean'] * 1e3:.1f} ms live, {found['simulated_mean'] * 1e3:.1f} ms simulated"
    return (
        f"{BASELINE} with the same requests: mean {means} (ratio {found['mean_ratio']:.2f}; at most 15 % is asked for)"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.load_balancer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    live = commands.add_parser("live", help="real processes: learn, then compare rules by switchback")
    live.add_argument("--seconds", type=float, default=300.0, help="of learning before the comparison (default 300)")
    live.add_argument(
        "--blocks", type=int, default=20, help="of 10 s, with --chaos of 30 s, for each rule (default 20)"
    )
    live.add_argument(
        "--rules",
        nargs="*",
        choices=[*RULES, EXPLORING],
        default=[],
        help=f"rivals besides {BASELINE}; {EXPLORING}: the policy that still learns",
    )
    live.add_argument("--kill-server", action="store_true", help="kill -9 the training server in mid-comparison")
    live.set_defaults(command=_live)
    simulated = commands.add_parser("simulate", help="the rules, and a trained policy, in a fast simulation")
    simulated.add_argument("--policy", type=Path, help="a run of rl4sys/LoadBalancing-v0 or its exported policy")
    simulated.add_argument("--seconds", type=float, default=120.0, help="for each seed (default 120)")
    simulated.add_argument("--seeds", type=int, default=5)
    simulated.set_defaults(command=_simulate)
    for command in (live, simulated):
        command.add_argument("--rate", type=float, default=RATE, help=f"requests per second (default {RATE:.0f})")
        command.add_argument(
            "--chaos", action="store_true", help="the fast backend is 8 times slower for 10 s of every 30"
        )
        command.add_argument("--out", type=Path, default=Path("load_balancer"), help="directory for logs and plots")
        command.add_argument("--json", action="store_true", help="print JSON for scripts")
    live.add_argument("--seed", type=int, default=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
