"""The comparison as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

COLUMNS = ("rule", "slowdown", "× sjf (95 %)", "wait", "p99", "longest", "turn-\naround", "used", "better")


def comparison_table(title: str, summaries: Sequence[dict[str, Any]]) -> Table:
    """One row for each rule, the lowest slowdown first; times in hours."""
    table = Table(title=title, title_style="bold", box=None, pad_edge=False)
    table.caption = (
        "Means over sequences. Bounded slowdown (10 s), and relative to sjf with a bootstrap interval; waits and "
        "turnaround in hours; utilisation; share of sequences with a lower slowdown than sjf."
    )
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "rule" else "right", no_wrap=True)
    for found in sorted(summaries, key=lambda found: found["slowdown"]):
        low, high = found["slowdown_interval"]
        table.add_row(
            found["name"],
            f"{found['slowdown']:,.2f}",
            f"{found['relative']['slowdown']:.2f} ({low:.2f}–{high:.2f})",
            f"{found['wait'] / 3600:,.2f}",
            *(f"{found[name] / 3600:,.1f}" for name in ("wait_p99", "wait_longest")),
            f"{found['turnaround'] / 3600:,.2f}",
            f"{found['utilisation']:.3f}",
            f"{100 * found['better_on']:.0f} %",
        )
    return table
