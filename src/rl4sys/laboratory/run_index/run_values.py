"""Conditions and orders over any setting or metric of runs, which are read from the runs themselves."""

from __future__ import annotations

import fnmatch
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.laboratory.run_index.filters import split_order
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.run_files import final_metrics, read_config

_CONDITION = re.compile(r"\s*([A-Za-z_][\w./-]*?[./][\w./-]*)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class ValueCondition(NamedTuple):
    """A condition over a setting (`algorithm.lr`) or the last value of a metric (`rollout/return`)."""

    key: str
    sign: str
    value: str

    def holds(self, found: Any) -> bool:
        """Whether it holds for a value; a run without it meets no condition but `!=`."""
        if self.sign in _COMPARISONS:
            number, wanted = _number(found), _number(self.value)
            return number is not None and wanted is not None and _COMPARISONS[self.sign](number, wanted)
        number, wanted = _number(found), _number(self.value)
        if number is not None and wanted is not None:
            is_equal = math.isclose(number, wanted, rel_tol=1e-9)
        else:
            is_equal = found is not None and fnmatch.fnmatch(str(found).lower(), self.value.lower())
        return is_equal == (self.sign != "!=")


def is_value_key(text: str) -> bool:
    """Whether a field is a setting or metric, and not a field of the index."""
    return "." in text or "/" in text


def split_conditions(texts: Sequence[str]) -> tuple[list[str], list[ValueCondition]]:
    """Conditions for the index, and those over settings and metrics."""
    fields, values = [], []
    for text in texts:
        match = _CONDITION.fullmatch(text)
        if match is None:
            fields.append(text)
        else:
            key, sign, value = match.groups()
            values.append(ValueCondition(key, "=" if sign == "==" else sign, value))
    return fields, values


def select_by_values(
    records: Sequence[RunRecord], root: Path, conditions: Sequence[ValueCondition], sort: str | None
) -> list[RunRecord]:
    """The runs that meet all conditions, in their order or the highest value of a setting or metric first.

    With a `-` before the setting or metric, the lowest value is first.
    """
    key, is_reversed = split_order(sort or "")
    keys = {condition.key for condition in conditions} | ({key} if key else set())
    found = {record.id: values_of_run(root / record.id, keys) for record in records}
    kept = [
        record
        for record in records
        if all(condition.holds(found[record.id].get(condition.key)) for condition in conditions)
    ]
    if not key:
        return kept
    return sorted(kept, key=lambda record: _order(found[record.id].get(key), is_reversed=is_reversed))


def values_of_run(run: Path, keys: set[str]) -> dict[str, Any]:
    """The values of some settings and metrics; those that a run does not have are left out."""
    values: dict[str, Any] = {}
    metrics = final_metrics(run) if any("/" in key for key in keys) else {}
    try:
        settings = flat_settings(read_config(run)) if any("/" not in key for key in keys) else {}
    except (OSError, ValueError):
        # A run that cannot be read meets no condition.
        settings = {}
    for key in keys:
        place = metrics if "/" in key else settings
        if key in place:
            values[key] = place[key]
    return values


def flat_settings(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by dotted keys."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            flat |= flat_settings(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _order(value: Any, *, is_reversed: bool) -> tuple[int, float, str]:
    """Numbers first, the highest first unless reversed; then texts; then runs without a value."""
    number = _number(value)
    if number is not None and not math.isnan(number):
        return 0, number if is_reversed else -number, ""
    return (2, 0.0, "") if value is None else (1, 0.0, str(value))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
