"""`rl4sys list` and `rl4sys show`: many runs in a table, or everything about one."""

from __future__ import annotations

import datetime
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.options import Debug, Json, OneRun, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.run_index.records import RunRecord


_SHOWN = 50
"""Runs that are shown on a terminal by default."""
_HINTS = 3
_COLUMNS = ("run", "status", "algorithm", "environment", "seed", "steps", "return", "best", "started", "tags")
_DROPPED_FIRST = ("started", "seed", "environment", "algorithm", "tags", "steps")
"""Columns that are dropped on a narrow terminal, first those that most names contain."""


def list_runs(
    conditions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONDITION", show_default=False, help="Only runs that meet the condition; the same as --filter."
        ),
    ] = None,
    filter_: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", "-f", metavar="CONDITION", show_default=False, help="Only runs that meet the condition."
        ),
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Sort by return (or reward), best, steps, time, name, seed, status, …; -return reverses the order.",
        ),
    ] = "time",
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help=f"Show at most this many runs, 0 for all; by default {_SHOWN} on a terminal, otherwise all.",
        ),
    ] = None,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """List runs with their status and returns.

    A CONDITION is a field, an operator and a value: algorithm=ppo, env=CartPole*, 'return>400', seed!=0, tag=good,
    status=interrupted. A run must meet all of them. Fields are algorithm, env, name, id, status, return (of the last
    evaluation), best, steps, seed, tag, note, host, git and config, any setting by its key (algorithm.lr) and the last
    value of any metric (rollout/return).

    [bold]Examples[/]

      rl4sys list

      rl4sys list --filter algorithm=ppo env=CartPole-v1 'return>400' --sort return

      rl4sys list 'algorithm.lr<1e-3' 'evaluation/success_rate>=0.9' --sort train/entropy

      rl4sys list --sort -return --limit 5

      rl4sys list status=interrupted --json
    """
    from rl4sys.cli.output import is_terminal, report
    from rl4sys.laboratory.run_index.filters import parse_filters, parse_order
    from rl4sys.laboratory.run_index.index import Query, open_index
    from rl4sys.laboratory.run_index.run_values import is_value_key, select_by_values, split_conditions

    shown = (_SHOWN if is_terminal() and not json else 0) if limit is None else limit
    fields, values = split_conditions([*(filter_ or ()), *(conditions or ())])
    by_value = sort if is_value_key(sort) else None
    reads_runs = bool(values) or by_value is not None
    query = Query(parse_filters(fields), parse_order("time" if by_value else sort), -1 if reads_runs else shown or -1)
    with open_index(runs, report) as index:
        if json and not reads_runs:
            _print_lines(index.json_lines(query))
            return
        records, total = index.select(query), index.count(query)
    if reads_runs:
        records = select_by_values(records, runs, values, by_value)
        total, records = len(records), records[: shown or None]
    if json:
        _print_lines(dumps(record.json_values(runs), ensure_ascii=False) for record in records)
        return
    _print_runs(records, runs)
    if total > len(records):
        report(f"{len(records)} of {total:,} runs; --limit 0 shows all")


def _print_lines(objects: Iterable[str]) -> None:
    """One JSON document with a line per run, which is faster to write and easy to search."""
    lines = ",\n".join(objects)
    sys.stdout.write(f"[\n{lines}\n]\n" if lines else "[]\n")


def _print_runs(records: Sequence[RunRecord], root: Path) -> None:
    from rl4sys.cli.output import print_table, report

    if not records:
        report(f"no matching runs in {root}")
        return
    print_table(*_fitting([_row(record) for record in records]))
    commands = [command for record in records if (command := record.resume_command(root))]
    for command in commands[:_HINTS]:
        report(f"resume with: {command}")
    if len(commands) > _HINTS:
        report(f"{len(commands) - _HINTS} more can be resumed; `rl4sys show RUN` prints the command")


def _fitting(rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """The columns and rows that fit the terminal: a wrapped name is hard to read and to copy."""
    from rl4sys.cli.output import is_terminal, width

    is_narrow = is_terminal()
    widths = {column: max(len(row[place]) for row in (_COLUMNS, *rows)) for place, column in enumerate(_COLUMNS)}
    if is_narrow and not any(row[-1] for row in rows):
        del widths["tags"]
    for column in _DROPPED_FIRST if is_narrow else ():
        if sum(widths.values()) + 3 * len(widths) + 1 <= width():
            break
        widths.pop(column, None)
    places = [place for place, column in enumerate(_COLUMNS) if column in widths]
    return list(widths), [[row[place] for place in places] for row in rows]


def _row(record: RunRecord) -> list[str]:
    from rl4sys.laboratory.formatting import format_number

    share = f" {record.steps / record.total:.0%}" if record.total and record.steps < record.total else ""
    return [
        record.id,
        f"{record.status}{share}{_where(record)}",
        record.algorithm,
        record.environment,
        "–" if record.seed is None else str(record.seed),
        f"{record.steps:,}",
        format_number(record.last),
        format_number(record.best),
        f"{datetime.datetime.fromtimestamp(record.created):%Y-%m-%d %H:%M}",
        " ".join(record.tags),
    ]


def _where(record: RunRecord) -> str:
    """The machine on which a run trains, if it is another one, and when it was last heard of."""
    if not record.is_elsewhere or record.heard is None:
        return ""
    return f" on {record.host}, last heard {max(0.0, time.time() - record.heard):.0f} s ago"


def show(run: OneRun, runs: Runs = Path("runs"), json: Json = False, debug: Debug = False) -> None:
    """Show the status, returns, settings and metrics of a run, and the command that resumes it.

    [bold]Examples[/]

      rl4sys show ppo-CartPole-v1-seed0

      rl4sys show runs/ppo-CartPole-v1-seed0-20260101-120000 --json
    """
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.cli.output import show as say
    from rl4sys.laboratory.run_index.index import record_at
    from rl4sys.laboratory.run_index.run_description import describe_run

    root, record = record_at(Path(run))
    values = describe_run(root, record, lambda text: report(f"note: {text}"))
    if json:
        print_json(values)
        return
    for name, value in _description(record, values):
        say(f"{name:<12} {value}")
    for note in values["notes"]:
        say(f"{'note':<12} {note['time']}  {note['text']}")
    metrics = values["metrics"]
    if metrics:
        say("")
        print_table(("metric", "last value"), [[name, f"{value:.6g}"] for name, value in sorted(metrics.items())])


def _description(record: RunRecord, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    from rl4sys.laboratory.formatting import format_number, format_size

    lines = [
        ("run", values["directory"]),
        ("name", record.name),
        ("status", f"{record.status}{_where(record)}, {record.steps:,} of {record.total:,} steps"),
        ("cause", record.cause),
        ("solved", values["solved"]),
        ("resume with", values["resume"]),
        ("algorithm", record.algorithm),
        ("environment", record.environment),
        ("seed", record.seed),
        ("return", f"{format_number(record.last)} in the last evaluation, {format_number(record.best)} in the best"),
        ("started", values["created"] + (f" on {record.host}" if record.host else "")),
        ("revision", record.git and record.git + (", with uncommitted changes" if record.dirty else "")),
        ("config", record.config[:16]),
        *(("began with", text) for text in _parents(values["lineage"]["parent"])),
        *(("not exact", text) for text in values["lineage"]["inexact"] or ()),
        ("size", format_size(values["bytes"])),
        ("tags", " ".join(record.tags)),
    ]
    return [(name, str(value)) for name, value in lines if value not in (None, "")]


def _parents(parent: Mapping[str, Any] | None) -> Iterator[str]:
    """Where the first weights come from: the source, and what was taken over; then where a copied run has them from."""
    while parent is not None:
        if parent.get("whole"):
            yield f"a copy of {parent['source']} at step {parent['step']:,}"
        else:
            parts = ", ".join(parent["parts"]) or "all"
            normalisers = " and its normalisers" if parent["normalisers"] else ""
            yield f"the weights ({parts}){normalisers} of {parent['source']} at step {parent['step']:,}"
        parent = parent.get("parent")
