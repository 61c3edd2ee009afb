"""Draws the hit rates that `cache --json` printed: one line for each cache, one point for each block of requests."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

LEARNED, BOUND = "learned", "Belady"


def style(name: str, number: int) -> dict[str, Any]:
    """The learned cache stands out, and the bound is dashed."""
    if name == LEARNED:
        return {"color": "black", "linewidth": 2.5, "marker": "o", "zorder": 3}
    if name == BOUND:
        return {"color": "gray", "linestyle": "--"}
    return {"color": f"C{number}", "linewidth": 1.3}


def draw(report: dict[str, Any], path: Path) -> None:
    """Write the plot of a report to a PNG file."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for number, (name, rates) in enumerate(report["hit_rates"].items()):
        # A last block that is much shorter than the others would only show noise.
        whole = rates["blocks"][: max(1, report["requests"] // report["block"])]
        ends = [min(report["requests"], (block + 1) * report["block"]) for block in range(len(whole))]
        axes.plot(ends, whole, label=f"{name} {rates['all']:.2f} %", **style(name, number))
    axes.set_xlabel(f"requests (each point is the hit rate of the latest {report['block']:,})")
    axes.set_ylabel("hit rate in %")
    what = f"{report['requests']:,} requests, {report['capacity']:,} pages in the cache"
    axes.set_title(f"{Path(report['trace']).name}: {what}")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, title="all requests")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> int:
    """Draw a report from a file or the standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path, help="what `cache --json` printed; - for the standard input")
    parser.add_argument("--out", type=Path, default=Path("cache.png"), help="the PNG file to write (%(default)s)")
    options = parser.parse_args()
    try:
        text = sys.stdin.read() if str(options.report) == "-" else options.report.read_text("utf-8")
        draw(json.loads(text), options.out)
    except (OSError, KeyError, TypeError, ValueError) as error:
        sys.stderr.write(f"Cannot draw {options.report}: {error!r}. It must be what `cache --json` printed.\n")
        return 1
    sys.stdout.write(f"Wrote {options.out}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
