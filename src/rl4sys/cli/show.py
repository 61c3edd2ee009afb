"""`rl4sys show`: show everything about one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl4sys.cli.options import Debug, Json, OneRun, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.run_index.records import RunRecord


def show(run: OneRun, runs: Runs = Path("runs"), json: Json = False, debug: Debug = False) -> None:
    """Show the status, returns, settings and metrics of a run, and the command that resumes it.

    [bold]Examples[/]

      rl4sys show ppo-CartPole-v1-seed0

      rl4sys show runs/ppo-CartPole-v1-seed0-20260101-120000 --json
    """
    from rl4sys.cli.output import print_json, print_table, report
    from rl4sys.cli.output import show as say
    from rl4sys.laboratory.run_index.index import open_index
    from rl4sys.run_files import final_metrics, read_config, size_of

    with open_index(runs, report) as index:
        root, record = index.find_one(run)
    directory = root / record.id
    metrics = final_metrics(directory)
    notes = _notes(directory)
    size = size_of(directory)
    if json:
        settings = read_config(directory) if record.config else None
        values = record.json_values(root) | {
            "bytes": size,
            "notes": [{"time": time, "text": text} for time, text in notes],
        }
        print_json({**values, "metrics": metrics, "settings": settings})
        return
    for name, value in _lines(record, record.json_values(root), size):
        say(f"{name:<12} {value}")
    for time, text in notes:
        say(f"{'note':<12} {time}  {text}")
    if metrics:
        say("")
        print_table(("metric", "last value"), [[name, f"{value:.6g}"] for name, value in sorted(metrics.items())])


def _notes(directory: Path) -> list[tuple[str, str]]:
    from rl4sys.cli.output import report
    from rl4sys.laboratory.run_index.labels import LabelsDamaged, read_labels

    try:
        return [(note.time, note.text) for note in read_labels(directory).notes]
    except LabelsDamaged as error:
        # The rest of the run can still be shown.
        report(f"note: {error}")
        return []


def _lines(record: RunRecord, values: dict[str, Any], size: int) -> list[tuple[str, str]]:
    from rl4sys.laboratory.formatting import format_number, format_size

    lines = [
        ("run", values["directory"]),
        ("name", record.name),
        ("status", f"{record.status}, {record.steps:,} of {record.total:,} steps"),
        ("cause", record.cause),
        ("resume with", values["resume"]),
        ("algorithm", record.algorithm),
        ("environment", record.environment),
        ("seed", record.seed),
        ("return", f"{format_number(record.last)} in the last evaluation, {format_number(record.best)} in the best"),
        ("started", values["created"] + (f" on {record.host}" if record.host else "")),
        ("revision", record.git and record.git + (", with uncommitted changes" if record.dirty else "")),
        ("config", record.config[:16]),
        ("size", format_size(size)),
        ("tags", " ".join(record.tags)),
    ]
    return [(name, str(value)) for name, value in lines if value not in (None, "")]
