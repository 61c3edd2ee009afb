"""Conditions on runs as people write them, such as `algorithm=ppo`, `return>400` or `tag=good`."""

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
}
_NUMBERS = {
    "return": "last",
    "reward": "last",
    "last": "last",
    "best": "best",
    "steps": "steps",
    "seed": "seed",
}
_TAG = "tag"
_HASHES = ("git", "config")
"""Given by their beginning, as people do."""
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
    """A condition or an order that cannot be understood."""


class Condition(NamedTuple):
    """A part of an SQL condition, with the values that it asks for."""

    sql: str
    values: tuple[str | float, ...] = ()


def parse_filters(texts: Sequence[str]) -> Condition:
    """All conditions as one; all must hold."""
    conditions = [_parse(text) for text in texts]
    sql = " AND ".join(condition.sql for condition in conditions) or "true"
    return Condition(sql, tuple(value for condition in conditions for value in condition.values))


def parse_order(text: str) -> str:
    """The SQL of an order: highest numbers first, names from A to Z, what is missing at the end."""
    if text not in _ORDERS:
        raise WrongFilter(f"--sort {text}: there is no such field{_hint(text, _ORDERS)}")
    column = _ORDERS[text]
    return f"{column} NULLS LAST, created DESC, id"


def _parse(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise WrongFilter(
            f"'{text}' is no condition; write a field, a sign and a value, such as algorithm=ppo or 'return>400' "
            f"(in quotes: > and < mean something to the shell)."
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


def _tag(sign: str, value: str, text: str) -> Condition:
    if sign not in ("=", "!=") or not value:
        tag = value or "good"
        raise WrongFilter(f"'{text}': a run has a tag or it has not; write tag={tag} or tag!={tag}.")
    return Condition(f"instr(tags, ?) {'>' if sign == '=' else '='} 0", (f" {value} ",))


def _number(column: str, sign: str, value: str, text: str) -> Condition:
    try:
        wanted = float(value.replace("_", ""))
    except ValueError:
        wanted = math.nan
    if math.isnan(wanted):
        raise WrongFilter(f"'{text}': '{value}' is not a number; write one in digits, such as 3000, 3e3 or -0.5.")
    return Condition(f"{column} {sign} ?", (wanted,))


def _text(field: str, sign: str, value: str, text: str) -> Condition:
    if sign not in ("=", "!="):
        raise WrongFilter(f"'{text}': {field} is a text; it can be equal (=) or not (!=).")
    if field == "status" and value not in tuple(Status):
        raise WrongFilter(f"'{text}': there is no status '{value}'; there are {', '.join(Status)}.")
    pattern = f"{value}*" if field in _HASHES else value
    # Upper and lower case do not matter, as in `--algorithm PPO`; * and ? stand for any text and any letter.
    negation = "NOT " if sign == "!=" else ""
    return Condition(f"lower(coalesce({_TEXTS[field]}, '')) {negation}GLOB ?", (pattern.lower().replace("[", "[[]"),))


def _hint(word: str, known: Sequence[str] | dict[str, str]) -> str:
    return did_you_mean(word, known) or f"; there are {', '.join(known)}."
