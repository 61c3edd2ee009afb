"""Everything about one run, as `rl4sys show --json` prints it: record, lineage, notes, last metrics and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rl4sys.laboratory.run_index.labels import LabelsDamaged, Note, read_labels
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.run_files import MANIFEST, final_metrics, read_config, read_json, read_result, size_of


def describe_run(root: Path, record: RunRecord, report: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """What is known about a run; `report` gets a sentence about what cannot be read."""
    directory = root / record.id
    manifest = read_json(directory / MANIFEST) if record.config else {}
    return record.json_values(root) | {
        "bytes": size_of(directory),
        "solved": read_result(directory).get("solved"),
        "lineage": {name: manifest.get(name) for name in ("parent", "changes", "inexact")},
        "notes": [{"time": note.time, "text": note.text} for note in _notes(directory, report)],
        "metrics": final_metrics(directory),
        "settings": read_config(directory) if record.config else None,
    }


def _notes(directory: Path, report: Callable[[str], None]) -> tuple[Note, ...]:
    try:
        return read_labels(directory).notes
    except LabelsDamaged as error:
        # The rest of the run can still be shown.
        report(str(error))
        return ()
