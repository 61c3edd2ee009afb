"""Filters for runs, such as `algorithm=ppo`, `return>400` or `tag=good`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from rl4sys.laboratory.run_index.records import Status
from rl4sys.suggestions import did_you_mean

_TEXTS = {
    "algorithm": "algorithm",
    "env": "environment",
    "environment": "environment",
    "name": "name",
    "id": "id",
    "run": "id",
    "status": "status",
    "host": "host",
    "git": "git",
    "config": "config",
    "note": "note",
    "parent": "parent",
}
_NUMBERS = {
    "return": "last",
    "reward": "last",
    "last": "last",
    "best": "best",
    "steps": "steps",
    "seed": "seed",
    "inexact": "inexact",
}
_TAG = "tag"
_HASHES = ("git", "config")
"""Fields that may be abbreviated to their beginning."""
_CONDITION = re.compile(r"\s*([A-Za-z_]+)\s*(>=|<=|!=|==|=|>|<)\s*(.*?)\s*", re.DOTALL)
_ORDERS = {
    "return": "last DESC",
    "reward": "last DESC",
    "last": "last DESC",
    "best": "best DESC",
    "steps": "steps DESC",
    "time": "created DESC",
    "created": "created DESC",
    "name": "name",
    "id": "id",
    "run": "id",
    "algorithm": "algorithm",
    "env": "environment",
    "environment": "environment",
    "seed": "seed",
    "status": "status",
}


class WrongFilter(ValueError):
    """A condition or an order that cannot be parsed."""


class RunFilter(NamedTuple):
    """An SQL condition with its parameters."""

    sql: str
    values: tuple[str | float, ...] = ()


def parse_filters(texts: Sequence[str]) -> RunFilter:
    """One filter for runs that meet all conditions."""
    conditions = [_parse(text) for text in texts]
    sql = " AND ".join(condition.sql for condition in conditions) or "true"
    return RunFilter(sql, tuple(value for condition in conditions for value in condition.values))


def parse_order(text: str) -> str:
    """The SQL of an order: highest numbers first, names from A to Z, missing values last; `-` before it reverses it."""
    field, _ = split_order(text)
    if field not in _ORDERS:
        raise WrongFilter(f"--sort {text}: there is no such field{_hint(field, _ORDERS)}")
    column = _ORDERS[field].partition(" ")[0]
    return f"{column} {'DESC' if is_descending(text) else 'ASC'} NULLS LAST, created DESC, id"


def split_order(text: str) -> tuple[str, bool]:
    """The field of an order, and whether it is reversed: `-return` is the lowest return first."""
    return text.removeprefix("-"), text.startswith("-")


def is_descending(text: str) -> bool:
    """Whether an order by a field of the index begins with the highest value."""
    field, is_reversed = split_order(text)
    return _ORDERS.get(field, "").endswith("DESC") != is_reversed


def _parse(text: str) -> RunFilter:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise WrongFilter(
            f"'{text}' is not a condition; write a field, an operator and a value: algorithm=ppo, 'return>400' "
            f"(in quotes, because > and < are special to the shell)."
        )
    field, sign, value = match.groups()
    sign = "=" if sign == "==" else sign
    if field == _TAG:
        return _tag(sign, value, text)
    if field in _NUMBERS:
        return _number(_NUMBERS[field], sign, value, text)
    if field in _TEXTS:
        return _text(field, sign, value, text)
    raise WrongFilter(f"'{text}': there is no field '{field}'{_hint(field, [*_TEXTS, *_NUMBERS, _TAG])}")


def _tag(sign: str, value: str, text: str) -> RunFilter:
    if sign not in ("=", "!=") or not value:
        tag = value or "good"
        raise WrongFilter(f"'{text}': tags can only be compared with = and !=; write tag={tag} or tag!={tag}.")
    return RunFilter(f"instr(tags, ?) {'>' if sign == '=' else '='} 0", (f" {value} ",))


def _number(column: str, sign: str, value: str, text: str) -> RunFilter:
    try:
        wanted = float(value.replace("_", ""))
    except ValueError:
        wanted = math.nan
    if math.isnan(wanted):
        raise WrongFilter(f"'{text}': '{value}' is not a number; write one in digits, such as 3000, 3e3 or -0.5.")
    return RunFilter(f"{column} {sign} ?", (wanted,))


def _text(field: str, sign: str, value: str, text: str) -> RunFilter:
    if sign not in ("=", "!="):
        raise WrongFilter(f"'{text}': {field} is a text, which can only be compared with = and !=.")
    if field == "status" and value not in tuple(Status):
        raise WrongFilter(f"'{text}': there is no status '{value}'; expected one of {', '.join(Status)}.")
    pattern = f"{value}*" if field in _HASHES else value
    # Case is ignored, as in `--algorithm PPO`; * and ? match any text and any character.
    negation = "NOT " if sign == "!=" else ""
    return RunFilter(f"lower(coalesce({_TEXTS[field]}, '')) {negation}GLOB ?", (pattern.lower().replace("[", "[[]"),))


def _hint(word: str, known: Sequence[str] | dict[str, str]) -> str:
    return did_you_mean(word, known) or f"; there are {', '.join(known)}."
