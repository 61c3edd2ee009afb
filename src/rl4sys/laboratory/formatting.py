"""Numbers for people. Apart from what computes them, so that a list of runs is there at once."""

from __future__ import annotations


def number(value: float | None) -> str:
    """A number in a few digits."""
    if value is None:
        return "–"
    return f"{value:.1f}" if abs(value) >= 10 or value == 0 else f"{value:.3g}"


def megabytes(size: int) -> str:
    """A size; small ones in kilobytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
