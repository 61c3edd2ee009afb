"""Numbers as tables and messages show them. Imports nothing, so that a list of runs appears at once."""

from __future__ import annotations


def format_number(value: float | None) -> str:
    """A number in a few digits; a dash if there is none."""
    if value is None:
        return "–"
    return f"{value:.1f}" if abs(value) >= 10 or value == 0 else f"{value:.3g}"


def format_return(value: float | None) -> str:
    """A return with one decimal; a dash if there is none."""
    return "–" if value is None else f"{value:.1f}"


def format_size(size: int) -> str:
    """Bytes as megabytes; small sizes as kilobytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
