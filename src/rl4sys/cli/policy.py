"""`rl4sys policy`: export, inspect and time trained policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.options import Best, Debug, Json, Runs, Source

if TYPE_CHECKING:
    from rl4sys.experiments.policies.trained_policy import TrainedPolicy

policy = typer.Typer(
    name="policy",
    no_args_is_help=True,
    help="Export, inspect or time a trained policy.",
    rich_markup_mode="rich",
)


@policy.command()
def export(
    source: Source,
    kind: Annotated[str, typer.Option("--format", help="rl4sys (for clients and this command) or onnx.")] = "rl4sys",
    output: Annotated[Path | None, typer.Option(help="The file to write.")] = None,
    bound: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="The largest accepted difference, relative to 1 + |value|."),
    ] = None,
    best: Best = True,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a policy to one file, after comparing it with the training network.

    [bold]Examples[/]

      rl4sys policy export ppo-CartPole --output cartpole.rl4sys

      rl4sys policy export runs/sac-Pendulum-v1-seed0-20260101-120000 --format onnx
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.experiments.policies.export import export_policy, format_named, usual_name
    from rl4sys.experiments.policies.parity import BOUND

    chosen = format_named(kind)
    trained = _found(source, best=best)
    accepted = BOUND if bound is None else bound
    made = export_policy(trained, chosen, output or usual_name(trained, chosen), accepted)
    if json:
        description = {"file": str(made.path), "format": kind, "bytes": made.size, "version": trained.policy.version}
        parity = {**made.parity._asdict(), "bound": accepted, "against": made.against}
        print_json({**description, "steps": trained.policy.steps, "sha256": trained.policy.sha256, "parity": parity})
        return
    show(f"file    {made.path}, {made.size:,} bytes, version {trained.policy.version}, step {trained.policy.steps:,}")
    show(
        f"parity  largest difference {made.parity.largest:.3g} in '{made.parity.where}' over "
        f"{made.parity.decisions:,} decisions, against {made.against}; the limit is {accepted:.3g}"
    )


@policy.command()
def inspect(
    source: Source, best: Best = True, runs: Runs = Path("runs"), json: Json = False, debug: Debug = False
) -> None:
    """Show the observations, ops, sizes, heads, normaliser, version and hash of a policy.

    [bold]Examples[/]

      rl4sys policy inspect ppo-CartPole

      rl4sys policy inspect cartpole.rl4sys --json
    """
    from rl4sys.cli.output import print_json, print_table, show
    from rl4sys.experiments.policies.description import describe_onnx, describe_policy

    description = describe_onnx(Path(source)) if _is_onnx(source) else describe_policy(_found(source, best=best))
    if json:
        print_json(description)
        return
    for line in _summary(description):
        show(line)
    rows = [
        [op["kind"], ", ".join(op["inputs"]), ", ".join(op["outputs"]), _shapes(op["tensors"]), f"{op['weights']:,}"]
        for op in description["ops"]
    ]
    print_table(("op", "from", "to", "tensors", "weights"), rows)


@policy.command()
def bench(
    source: Source,
    rows: Annotated[int, typer.Option(min=1, help="Observations per call.")] = 1,
    decisions: Annotated[int, typer.Option(min=10, help="Calls to time.")] = 5_000,
    best: Best = True,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Time the decisions of a policy with numpy, as clients use it, and with onnxruntime if it is installed.

    [bold]Examples[/]

      rl4sys policy bench ppo-CartPole

      rl4sys policy bench cartpole.onnx --rows 8 --json
    """
    from rl4sys.cli.output import print_json, print_table
    from rl4sys.experiments.policies.latency import bench_onnx, bench_policy

    if _is_onnx(source):
        found = list(bench_onnx(Path(source), rows, decisions))
    else:
        found = list(bench_policy(_found(source, best=best).policy, rows, decisions))
    if json:
        print_json({"rows": rows, "decisions": decisions, "microseconds": [latency._asdict() for latency in found]})
        return
    cells = [[one.runtime, one.policy, str(rows), f"{one.median:.1f}", f"{one.p99:.1f}"] for one in found]
    print_table(("runtime", "policy", "rows", "median µs", "p99 µs"), cells)


def _found(source: str, *, best: bool) -> TrainedPolicy:
    from rl4sys.cli.output import report
    from rl4sys.experiments.policies.trained_policy import find_policy

    trained = find_policy(source, best=best)
    for reason in trained.skipped:
        report(f"warning: skipped a damaged checkpoint ({reason}); using that of step {trained.policy.steps:,}.")
    return trained


def _is_onnx(source: str) -> bool:
    return source.endswith(".onnx") and Path(source).is_file()


def _summary(description: dict[str, Any]) -> list[str]:
    arrays = ", ".join(f"{array['name']} {array['dtype']}{array['shape']}" for array in description["observation"])
    memory = ", ".join(f"{part['name']} {part['shape']}" for part in description["memory"])
    chance = ", ".join(f"{part['name']} [{part['size']}] {part['distribution']}" for part in description["chance"])
    action = ", ".join(f"{name} {value}" for name, value in description["action"].items() if name != "kind")
    lines = [
        f"policy       {description['policy']}",
        f"version      {description['version']}, at step {description['steps']:,}",
        f"environment  {description['environment'] or 'unknown'}",
        f"observation  {arrays}",
        f"normaliser   {', '.join(description['normaliser']) or 'none'}",
        f"memory       {memory or 'none'}",
        *([f"chance       {chance}"] if chance else []),
        f"action       {description['action']['kind']}: {action}",
        *(f"{name:<12} {_head(head)}" for name, head in description["heads"].items()),
        f"weights      {description['weights']:,} ({description['bytes']:,} bytes), SHA-256 {description['sha256']}",
    ]
    if "onnx" in description:
        model = description["onnx"]
        given = f"{', '.join(model['inputs'])} → {', '.join(model['outputs'])}"
        lines.append(f"onnx         opset {model['opset']}, {model['nodes']} nodes: {given}")
    return lines


def _head(head: dict[str, Any]) -> str:
    settings = "".join(f", {name} {value}" for name, value in head["settings"].items())
    mask = f", masked by {head['mask']}" if head["mask"] else ""
    return f"{head['kind']} of {', '.join([*head['inputs'], *head['tensors']])}{mask}{settings}"


def _shapes(tensors: dict[str, list[int]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in tensors.items())
