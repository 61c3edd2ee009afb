"""Exports runs and their comparison as LaTeX, Markdown, CSV, JSON or HTML."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.laboratory.comparison.comparison import MANY, Comparison
from rl4sys.laboratory.comparison.groups import differing, settings_of
from rl4sys.laboratory.comparison.statistics import Estimate
from rl4sys.laboratory.formatting import format_number
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.laboratory.run_index.run_values import flat_settings
from rl4sys.run_files import final_metrics, read_config, read_records

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    sign: f"\\{sign}" for sign in "&%$#_{}"
}

_NAMED = ("algorithm.name", "environment.name")
"""Settings that every tidy export has as the columns `algorithm` and `environment`."""


class ExportFormat(StrEnum):
    """A format of `rl4sys export`."""

    LATEX = "latex"
    MARKDOWN = "markdown"
    CSV = "csv"
    TIDY = "tidy"
    JSON = "json"
    HTML = "html"


class ExportTable(NamedTuple):
    """A table with a title; the first `texts` columns are text, the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int


Chosen = Sequence[tuple[Path, RunRecord]]


def export(chosen: Chosen, comparison: Comparison, format_: ExportFormat, plot: bytes | None = None) -> str:
    """The text of an export: tables, one row per run for CSV, everything for JSON."""
    match format_:
        case ExportFormat.JSON:
            return _json(chosen, comparison)
        case ExportFormat.CSV:
            return as_csv(chosen)
        case ExportFormat.TIDY:
            return as_tidy_csv(chosen)
        case ExportFormat.MARKDOWN:
            return "\n".join(_markdown(table) for table in tables(chosen, comparison))
        case ExportFormat.LATEX:
            return "\n".join(_latex(table) for table in tables(chosen, comparison))
        case ExportFormat.HTML:
            return _html(tables(chosen, comparison), plot)


def tables(chosen: Chosen, comparison: Comparison) -> list[ExportTable]:
    """Results by group, settings that differ, and the runs."""
    tables = [results_table(comparison)]
    if comparison.improvements:
        tables.append(improvement_table(comparison))
    if comparison.differences:
        tables.append(settings_table(comparison))
    return [*tables, _runs_table(chosen)]


def results_table(comparison: Comparison) -> ExportTable:
    """One row per group and metric."""
    rows = [
        [
            score.group,
            score.metric,
            str(score.seeds),
            format_number(score.iqm.value),
            _interval(score.iqm),
            format_number(score.mean),
            format_number(score.low),
            format_number(score.high),
        ]
        for score in comparison.ranking()
    ]
    columns = ("experiment", "metric", "seeds", "IQM", "95 % interval", "mean", "min", "max")
    return ExportTable("Results", columns, rows, 2)


def improvement_table(comparison: Comparison) -> ExportTable:
    """One row per pair of groups; of many groups, only the best of each metric over each other."""
    shown = comparison.improvements
    if len(comparison.groups) > MANY:
        best = {score.metric: score.group for score in reversed(comparison.ranking())}
        shown = tuple(one for one in shown if best.get(one.metric) == one.group)
    rows = [
        [one.group, one.other, one.metric, _share(one.probability.value), _interval(one.probability, _share)]
        for one in shown
    ]
    return ExportTable(
        "Probability of improvement", ("experiment", "over", "metric", "probability", "95 % interval"), rows, 3
    )


def settings_table(comparison: Comparison) -> ExportTable:
    """One row per setting that differs; of many groups one row per group, with few columns instead of many."""
    if len(comparison.groups) > MANY:
        each = [
            [str(values[place]) for values in comparison.differences.values()]
            for place in range(len(comparison.groups))
        ]
        rows = [[group.label, *settings] for group, settings in zip(comparison.groups, each, strict=True)]
        return ExportTable(
            "Settings that differ", ("experiment", *comparison.differences), rows, 1 + len(comparison.differences)
        )
    rows = [
        [key, *("–" if value is None else str(value) for value in values)]
        for key, values in comparison.differences.items()
    ]
    return ExportTable(
        "Settings that differ",
        ("setting", *(each.label for each in comparison.groups)),
        rows,
        1 + len(comparison.groups),
    )


def _interval(estimate: Estimate, format_: Callable[[float], str] = format_number) -> str:
    """An interval as text; a dash if there is none."""
    if estimate.low is None or estimate.high is None:
        return "–"
    return f"{format_(estimate.low)} to {format_(estimate.high)}"


def _share(value: float) -> str:
    return f"{value:.2f}"


def _runs_table(chosen: Chosen) -> ExportTable:
    rows = [
        [
            record.id,
            record.algorithm,
            record.environment,
            str(record.status),
            "–" if record.git is None else record.git[:10] + ("+" if record.dirty else ""),
            "–" if record.seed is None else str(record.seed),
            f"{record.steps:,}",
            format_number(record.last),
            format_number(record.best),
        ]
        for _, record in chosen
    ]
    columns = ("run", "algorithm", "environment", "status", "revision", "seed", "steps", "last return", "best return")
    return ExportTable("Runs", columns, rows, 5)


def _json(chosen: Chosen, comparison: Comparison) -> str:
    runs = [
        {
            **record.json_values(root),
            "metrics": final_metrics(root / record.id),
            "settings": read_config(root / record.id) if record.config else None,
        }
        for root, record in chosen
    ]
    return json.dumps({"runs": runs, "comparison": comparison.json_values()}, indent=1, ensure_ascii=False) + "\n"


def as_csv(chosen: Chosen) -> str:
    """One row per run, with the last value of every metric and every setting by its dotted key."""
    rows: list[dict[str, Any]] = []
    for root, record in chosen:
        values = record.json_values(root) | {"tags": " ".join(record.tags)}
        settings = flat_settings(read_config(root / record.id)) if record.config else {}
        rows.append({**values, **final_metrics(root / record.id), **settings})
    return _csv(rows)


def as_tidy_csv(chosen: Chosen) -> str:
    """Learning curves in long form: one row per run, step and metric, as plotting libraries expect them.

    Settings that differ between the runs are columns, so that curves can be grouped by them.
    """
    settings = _differing_settings(chosen)
    rows = [
        {
            "run": record.id,
            "name": record.name,
            "algorithm": record.algorithm,
            "environment": record.environment,
            "seed": record.seed,
            "config": record.config[:16],
            **settings.get(root / record.id, {}),
            "step": found["step"],
            "metric": name,
            "value": value,
        }
        for root, record in chosen
        for found in read_records(root / record.id)
        for name, value in found["metrics"].items()
        if value is not None
    ]
    return _csv(rows)


def _differing_settings(chosen: Chosen) -> dict[Path, dict[str, Any]]:
    """The settings of each run that are not the same in all; a run without a config has none."""
    runs = [root / record.id for root, record in chosen if record.config]
    apart = differing([settings_of(run) for run in runs])
    shown = {key: values for key, values in apart.items() if key not in _NAMED}
    return {run: {key: values[place] for key, values in shown.items()} for place, run in enumerate(runs)}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _markdown(table: ExportTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

    rule = "|" + "|".join("---" if place < table.texts else "---:" for place in range(len(table.columns))) + "|"
    return "\n".join([f"## {table.title}", "", line(table.columns), rule, *map(line, table.rows), ""])


def _latex(table: ExportTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return "  " + " & ".join(_escaped(cell) for cell in cells) + r" \\"

    alignment = "l" * table.texts + "r" * (len(table.columns) - table.texts)
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escaped(table.title)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        line(table.columns),
        r"\midrule",
        *map(line, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in text).replace("–", "--")


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}"
    "table{border-collapse:collapse;margin-bottom:2rem}td,th{padding:.3rem .8rem;border-bottom:1px solid #ddd;"
    "text-align:left}td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%}"
)


def _html(tables: Sequence[ExportTable], plot: bytes | None) -> str:
    parts = [f'<!doctype html>\n<meta charset="utf-8">\n<title>Runs</title>\n<style>{_STYLE}</style>']
    if plot is not None:
        encoded = base64.b64encode(plot).decode()
        parts.append(f'<img alt="Learning curves" src="data:image/png;base64,{encoded}">')
    for table in tables:
        parts.append(f"<h2>{html.escape(table.title)}</h2>\n<table>\n{_html_row(table.columns, table.texts, 'th')}")
        parts += [_html_row(row, table.texts, "td") for row in table.rows]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _html_row(cells: Sequence[str], texts: int, kind: str) -> str:
    shown = (
        f"<{kind}{'' if place < texts else ' class=number'}>{html.escape(cell)}</{kind}>"
        for place, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"
