"""A policy as data: observations, program, head and actions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from rl4sys.experience import ArraySpec, SegmentSchema

Setting: TypeAlias = "float | int | str | bool | list[int] | list[float]"


def number(settings: Mapping[str, Setting], name: str, owner: str) -> float:
    """A setting that must be a number; `owner` names its op or head in the error."""
    value = settings.get(name)
    if isinstance(value, int | float):
        return value
    raise ValueError(f"Setting '{name}' of {owner} is {value!r}; expected a number.")


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


@dataclass(frozen=True, slots=True)
class Op:
    """One assignment of a program: `outputs = kind(inputs; tensors)`. Registers are assigned once."""

    kind: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    tensors: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named part of the flat weights. Its offset is the sum of the sizes before it."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Memory:
    """One array of policy memory: read from register `name`, written back from register `next`."""

    name: str
    shape: tuple[int, ...]
    next: str


@dataclass(frozen=True, slots=True)
class Program:
    """Ops over named inputs and tensors. The same program runs in torch, numpy and C++."""

    inputs: tuple[ArraySpec, ...]
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    carry: tuple[Memory, ...] = ()


HeadKind = Literal[
    "categorical",
    "epsilon_greedy",
    "gaussian",
    "tanh_gaussian",
    "deterministic",
    "perturbed",
    "noise_conditioned",
    "mixed",
]
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
"""Every head that the runtimes have. A client lists these when it joins."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head: turns registers into an action.

    categorical(logits) · epsilon_greedy(values; epsilon) · gaussian(mean; log_std) ·
    tanh_gaussian(mean, log_std[; epsilon]) · deterministic(scores or mean) ·
    perturbed(mean[, noise]; std, epsilon) · noise_conditioned(value[; epsilon]) ·
    mixed(logits and means; log_std). `mask` names the observation that marks allowed choices.
    """

    kind: HeadKind
    inputs: tuple[str, ...]
    tensors: tuple[str, ...] = ()
    mask: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Registers that the head assigns for the carry: the setting `next`, if there is one."""
        following = self.settings.get("next")
        return (following,) if isinstance(following, str) else ()

    @property
    def chance(self) -> ArraySpec | None:
        """The register that holds normal numbers before the program runs: settings `noise` (its name) and `size`."""
        if self.kind != "noise_conditioned":
            return None
        name, size = self.settings.get("noise"), self.settings.get("size")
        if not isinstance(name, str) or isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(
                f"Settings 'noise' and 'size' of {self.kind} are {name!r} and {size!r}; expected the name of a "
                f"register and a number from 1."
            )
        return ArraySpec(name, "float32", (size,))


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """Everything about a policy except its weights."""

    action: ActionSpec
    program: Program
    head: Head

    @property
    def observation(self) -> tuple[ArraySpec, ...]:
        """The arrays that the policy observes."""
        return self.program.inputs

    @property
    def noted(self) -> tuple[ArraySpec, ...]:
        """What the policy records about each decision for the learner."""
        if self.head.kind in ("categorical", "gaussian", "tanh_gaussian", "mixed"):
            return (ArraySpec("log_prob", "float32", ()),)
        return ()

    def segment_schema(self) -> SegmentSchema:
        """The segments that this policy produces when it acts."""
        carry = tuple(ArraySpec(memory.name, "float32", memory.shape) for memory in self.program.carry)
        return SegmentSchema(self.observation, action_array(self.action), self.noted, carry)

    def to_json(self) -> str:
        """The canonical text: equal specs have equal texts.

        Infinite bounds are the strings "inf" and "-inf", because JSON has no such numbers.
        """
        return json.dumps(_plain(self), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> PolicySpec:
        """Read back what `to_json` wrote."""
        raw = json.loads(text)
        program = raw["program"]
        return cls(
            action=_action(raw["action"]),
            program=Program(
                inputs=tuple(ArraySpec(i["name"], i["dtype"], tuple(i["shape"])) for i in program["inputs"]),
                ops=tuple(map(_op, program["ops"])),
                tensors=tuple(Tensor(t["name"], tuple(t["shape"])) for t in program["tensors"]),
                carry=tuple(Memory(m["name"], tuple(m["shape"]), m["next"]) for m in program["carry"]),
            ),
            head=Head(**(raw["head"] | {name: tuple(raw["head"][name]) for name in ("inputs", "tensors")})),
        )


def _op(raw: dict[str, Any]) -> Op:
    outputs, inputs, tensors = (tuple(raw[name]) for name in ("outputs", "inputs", "tensors"))
    return Op(raw["kind"], outputs, inputs, tensors, raw["settings"])


def _action(raw: dict[str, Any]) -> ActionSpec:
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


def _plain(value: Any) -> Any:
    """Records as dictionaries and tuples as lists, for JSON."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        # 1 and 1.0 are equal, so they must have the same text.
        return str(value) if not math.isfinite(value) else int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    slots = getattr(type(value), "__slots__", None)
    if slots is not None:
        return {name: _plain(getattr(value, name)) for name in slots}
    return value
