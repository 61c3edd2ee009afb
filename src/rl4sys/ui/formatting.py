"""Numbers and times as the pages show them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

from rl4sys.laboratory.formatting import format_number, format_size
from rl4sys.operations.status_tables import shown_bytes


def format_time(seconds: float) -> str:
    """A time in seconds since 1970, in the time zone of this machine."""
    return f"{datetime.datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def format_clock(seconds: float) -> str:
    """The time of day of a time in seconds since 1970, in the time zone of this machine."""
    return f"{datetime.datetime.fromtimestamp(seconds):%H:%M:%S}"


def format_count(value: int) -> str:
    """A whole number with thousands apart."""
    return f"{value:,}"


def format_share(value: float) -> str:
    """A share as a percentage."""
    return f"{value:.0%}"


def format_duration(seconds: float) -> str:
    """Seconds as people say them, in one or two units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 else f"{whole // 60} min"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def format_value(value: Any) -> str:
    """A setting as it is written in a config."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def format_digits(value: float | None) -> str:
    """A metric with six digits; a dash if there is none."""
    return "–" if value is None else f"{value:.6g}"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "number": format_number,
    "count": format_count,
    "share": format_share,
    "size": format_size,
    "time": format_time,
    "duration": format_duration,
    "value": format_value,
    "digits": format_digits,
    "clock": format_clock,
    "bytes": shown_bytes,
}
"""The names of these functions in templates."""
