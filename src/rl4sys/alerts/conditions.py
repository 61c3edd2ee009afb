"""Conditions over metrics, as a config writes them: a small language of our own, parsed and never executed.

    train/loss > 10                     stalled(rollout/return)
    not_finite(train/loss)              machine/steps_per_second < 0.3 * median(machine/steps_per_second)

A name with slashes, written without spaces, is a metric; `a / b` with spaces divides.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = float | bool

_METRIC = re.compile(r"[A-Za-z_]\w*(?:/[A-Za-z_][\w.]*)+")
_LONGEST = 300
_OPERATORS: Mapping[type[ast.AST], Callable[[float, float], Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class BadCondition(ValueError):
    """A condition cannot be understood."""


class NotKnownYet(LookupError):
    """A condition asks for something that has not been measured so far."""


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """The newest value of each metric, and its earlier values, for a condition to look at."""

    now: Mapping[str, float]
    past: Mapping[str, Sequence[tuple[float, float]]]
    """By metric: times (steps of a run, or seconds) and values, oldest first, the newest included."""
    over: float
    """How far functions of the past look back."""


class AlertCondition:
    """A condition that is either true, false, or not known yet."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._names: dict[str, str] = {}
        if len(text) > _LONGEST:
            raise BadCondition(f"The condition has {len(text)} characters; at most {_LONGEST} are allowed.")
        try:
            tree = ast.parse(_METRIC.sub(self._placeholder, text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise BadCondition(f"'{text}' is no condition; write it like: train/loss > 10") from None
        self.metrics: frozenset[str] = frozenset()
        """The metrics that it reads."""
        self.remembered: frozenset[str] = frozenset()
        """Those whose past it looks back on."""
        self._value = self._compiled(tree)

    def holds(self, history: MetricHistory) -> bool:
        """Whether it is true now; false as long as something it asks for is not known."""
        try:
            return bool(self._value(history))
        except (NotKnownYet, OverflowError, ZeroDivisionError):
            return False

    def _placeholder(self, found: re.Match[str]) -> str:
        name = f"metric_{len(self._names)}"
        self._names[name] = found.group()
        return name

    def _compiled(self, node: ast.AST) -> Callable[[MetricHistory], Value]:
        match node:
            case ast.Constant(value=bool() | int() | float() as number):
                return lambda history: number
            case ast.Name(id=name):
                return self._metric(self._names.get(name, name))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._compiled(operand)
                return lambda history: -inner(history)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._compiled(operand)
                return lambda history: not inner(history)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                above, below = self._compiled(left), self._compiled(right)
                return lambda history: above(history) / below(history)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return self._both(left, _OPERATORS[type(op)], right)
            case ast.Compare(left=first, ops=ops, comparators=others) if all(type(op) in _OPERATORS for op in ops):
                terms = [first, *others]
                parts = [self._both(a, _OPERATORS[type(op)], b) for a, op, b in zip(terms, ops, others, strict=False)]
                return lambda history: all(part(history) for part in parts)
            case ast.BoolOp(op=ast.And(), values=values):
                parts = [self._compiled(value) for value in values]
                return lambda history: all(part(history) for part in parts)
            case ast.BoolOp(op=ast.Or(), values=values):
                parts = [self._compiled(value) for value in values]
                return lambda history: any(_known(part, history) for part in parts)
            case ast.Call(func=ast.Name(id=function), args=[argument], keywords=[]):
                return self._call(function, argument)
        raise BadCondition(
            f"'{self.text}': {ast.unparse(node)} is not understood. There are numbers, metrics, + - * / with spaces, "
            f"comparisons, and, or, not, and the functions {', '.join(sorted({*_OF_PAST, *_OF_NUMBER}))}."
        )

    def _both(
        self, left: ast.AST, combine: Callable[[float, float], Value], right: ast.AST
    ) -> Callable[[MetricHistory], Value]:
        first, second = self._compiled(left), self._compiled(right)
        return lambda history: combine(first(history), second(history))

    def _metric(self, name: str) -> Callable[[MetricHistory], Value]:
        self.metrics |= {name}

        def value(history: MetricHistory) -> Value:
            if name not in history.now:
                raise NotKnownYet(name)
            return history.now[name]

        return value

    def _call(self, function: str, argument: ast.AST) -> Callable[[MetricHistory], Value]:
        if function in _OF_NUMBER:
            of_number, inner = _OF_NUMBER[function], self._compiled(argument)
            return lambda history: of_number(inner(history))
        if function not in _OF_PAST:
            known = ", ".join(sorted({*_OF_PAST, *_OF_NUMBER}))
            raise BadCondition(f"'{self.text}': there is no function {function}; there are {known}.")
        if not isinstance(argument, ast.Name):
            raise BadCondition(
                f"'{self.text}': {function}(…) looks back on one metric, such as {function}(train/loss)."
            )
        name = self._names.get(argument.id, argument.id)
        self.metrics |= {name}
        self.remembered |= {name}
        of_past = _OF_PAST[function]
        return lambda history: of_past(history.past.get(name, ()), history.over)


def _known(part: Callable[[MetricHistory], Value], history: MetricHistory) -> bool:
    """Whether a part of an `or` is true; one that is not known does not hide another that is."""
    try:
        return bool(part(history))
    except NotKnownYet:
        return False


def _recent(past: Sequence[tuple[float, float]], over: float) -> list[float]:
    """The values of the last `over` steps or seconds."""
    if not past:
        raise NotKnownYet
    newest = past[-1][0]
    return [value for time, value in past if time > newest - over]


def _increase(past: Sequence[tuple[float, float]], over: float) -> float:
    """How much a counter grew; where it was set back, it counts from there."""
    recent = _recent(past, over)
    return sum(max(0.0, after - before) for before, after in itertools.pairwise(recent))


def _stalled(past: Sequence[tuple[float, float]], over: float) -> bool:
    """Whether nothing in the last `over` steps is better than the best before; not known until there is a before."""
    recent = _recent(past, over)
    before = [value for _, value in past[: len(past) - len(recent)]]
    if not before:
        raise NotKnownYet
    return max(recent) <= max(before)


_OF_PAST: Mapping[str, Callable[[Sequence[tuple[float, float]], float], Value]] = {
    "mean": lambda past, over: statistics.fmean(_recent(past, over)),
    "median": lambda past, over: statistics.median(_recent(past, over)),
    "lowest": lambda past, over: min(_recent(past, over)),
    "highest": lambda past, over: max(_recent(past, over)),
    "increase": _increase,
    "stalled": _stalled,
}
_OF_NUMBER: Mapping[str, Callable[[float], Value]] = {
    "abs": abs,
    "not_finite": lambda value: not math.isfinite(value),
}
