"""The kinds of actions, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rl4sys.experience import ArraySpec


@dataclass(frozen=True, slots=True)
class DiscreteAction:
    """One of n choices, numbered from `start` for the environment and from 0 inside."""

    n: int
    start: int = 0
    kind: Literal["discrete"] = "discrete"


@dataclass(frozen=True, slots=True)
class MultiDiscreteAction:
    """Several choices at once."""

    sizes: tuple[int, ...]
    kind: Literal["multi_discrete"] = "multi_discrete"


@dataclass(frozen=True, slots=True)
class BoxAction:
    """A vector of real numbers; bounds may be infinite for policies that do not squash."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    kind: Literal["box"] = "box"

    @property
    def size(self) -> int:
        """How many numbers one action has."""
        return len(self.low)


@dataclass(frozen=True, slots=True)
class MixedAction:
    """Several choices and several real numbers at once, in one float32 vector: the choices first."""

    sizes: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    kind: Literal["mixed"] = "mixed"

    @property
    def choices(self) -> int:
        """How many outputs a network needs for the choices."""
        return sum(self.sizes)

    @property
    def box(self) -> BoxAction:
        """The real numbers alone."""
        return BoxAction(self.low, self.high)


ActionSpec: TypeAlias = DiscreteAction | MultiDiscreteAction | BoxAction | MixedAction


def output_size(action: ActionSpec) -> int:
    """How many outputs a network needs: one for each choice, or one for each part of a vector."""
    match action:
        case DiscreteAction(n=n):
            return n
        case MultiDiscreteAction(sizes=sizes):
            return sum(sizes)
        case BoxAction():
            return action.size
        case MixedAction():
            return action.choices + len(action.low)


def action_array(action: ActionSpec) -> ArraySpec:
    """How actions are stored in segments: int64 choices counted from 0, or float32 vectors (also mixed ones)."""
    match action:
        case DiscreteAction():
            return ArraySpec("action", "int64", ())
        case MultiDiscreteAction(sizes=sizes):
            return ArraySpec("action", "int64", (len(sizes),))
        case BoxAction():
            return ArraySpec("action", "float32", (action.size,))
        case MixedAction(sizes=sizes, low=low):
            return ArraySpec("action", "float32", (len(sizes) + len(low),))


def action_from_json(raw: dict[str, Any]) -> ActionSpec:
    """Read an action from the JSON of a policy."""
    match raw:
        case {"kind": "discrete", "n": n, "start": start}:
            return DiscreteAction(n, start)
        case {"kind": "multi_discrete", "sizes": sizes}:
            return MultiDiscreteAction(tuple(sizes))
        case {"kind": "box", "low": low, "high": high}:
            return BoxAction(tuple(map(float, low)), tuple(map(float, high)))
        case {"kind": "mixed", "sizes": sizes, "low": low, "high": high}:
            return MixedAction(tuple(sizes), tuple(map(float, low)), tuple(map(float, high)))
    raise ValueError(f"Unknown action {raw}; expected kind discrete, multi_discrete, box or mixed.")
