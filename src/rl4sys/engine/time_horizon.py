"""The horizon of an algorithm that discounts by elapsed time: a setting such as `30s`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|h)")


def _read(value: Any) -> Any:
    found = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if value is None or (found is not None and float(found[1]) > 0):
        return value
    raise ValueError(f"got {value!r:.40}; expected a time above 0 with its unit: 500ms, 30s, 5min or 2h")


Horizon = Annotated[str | None, BeforeValidator(_read)]
"""A time with its unit, or None."""


def horizon_seconds(horizon: str | None) -> float | None:
    """The seconds of a valid horizon."""
    if horizon is None:
        return None
    found = _TIME.fullmatch(horizon.strip())
    assert found is not None
    return float(found[1]) * _SECONDS[found[2]]
