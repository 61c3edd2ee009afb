"""A policy as data: observations, program, head and actions."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.policy.action_spec import ActionSpec, action_array, action_from_json

MAX_CARRY_BYTES = 1 << 20
"""Of a program's memory, as float32."""
_OMITTED_IF_EMPTY = ("chance", "model")

Setting: TypeAlias = "float | int | str | bool | list[int] | list[float]"


def number(settings: Mapping[str, Setting], name: str, owner: str) -> float:
    """A setting that must be a number; `owner` names its op or head in the error."""
    value = settings.get(name)
    if isinstance(value, int | float):
        return value
    raise ValueError(f"Setting '{name}' of {owner} is {value!r}; expected a number.")


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


Distribution = Literal["normal", "uniform"]
DISTRIBUTIONS: tuple[Distribution, ...] = get_args(Distribution)


@dataclass(frozen=True, slots=True)
class Chance:
    """A register of random numbers that a program reads like an input, drawn for each decision."""

    name: str
    size: int
    distribution: Distribution

    @property
    def uniform_numbers(self) -> int:
        """How many uniform numbers of a decision's noise it takes: two for each normal number."""
        return 2 * self.size if self.distribution == "normal" else self.size


@dataclass(frozen=True, slots=True)
class Program:
    """Ops over named inputs and tensors. The same program runs in torch, numpy and C++."""

    inputs: tuple[ArraySpec, ...]
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    carry: tuple[Memory, ...] = ()
    chance: tuple[Chance, ...] = ()
    """Filled from the decision's noise before the first op; the head's own numbers follow theirs."""

    @property
    def uniform_numbers(self) -> int:
        """How many uniform numbers of a decision's noise the program takes."""
        return sum(chance.uniform_numbers for chance in self.chance)

    def require_small_carry(self) -> None:
        """Raise `ValueError` if the carry is too large to be kept for every stream and sent with every segment."""
        taken = 4 * sum(math.prod(memory.shape) for memory in self.carry)
        if taken > MAX_CARRY_BYTES:
            largest = max(self.carry, key=lambda memory: math.prod(memory.shape))
            raise ValueError(
                f"The policy's memory takes {taken:,} bytes; at most {MAX_CARRY_BYTES:,} can be carried. The largest "
                f"part is '{largest.name}' {list(largest.shape)}: choose a shorter window or smaller layers."
            )


HeadKind = Literal[
    "categorical",
    "epsilon_greedy",
    "gaussian",
    "tanh_gaussian",
    "deterministic",
    "perturbed",
    "noise_conditioned",
    "mixed",
    "planned",
]
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
"""Every head of the format."""
CLIENT_HEADS: tuple[HeadKind, ...] = tuple(kind for kind in HEAD_KINDS if kind != "planned")
"""The heads that every runtime has; a client lists these when it joins. Planning is the server's, with `Act`."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head: turns registers into an action.

    categorical(logits) · epsilon_greedy(values; epsilon) · gaussian(mean; log_std) ·
    tanh_gaussian(mean, log_std[; epsilon]) · deterministic(scores or mean) ·
    perturbed(mean[, noise]; std, epsilon) · noise_conditioned(value[; epsilon]) ·
    mixed(logits and means; log_std) · planned(state, …): searches with `PolicySpec.model`.
    `mask` names the observation that marks allowed choices.
    """

    kind: HeadKind
    inputs: tuple[str, ...]
    tensors: tuple[str, ...] = ()
    mask: str | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Registers that the head assigns for the carry: those of its settings `next` and `action`, if it has them."""
        names = (self.settings.get("next"), self.settings.get("action"))
        return tuple(name for name in names if isinstance(name, str))

    @property
    def action_register(self) -> str | None:
        """The register that takes the action as networks see it: the setting `action`, if there is one."""
        name = self.settings.get("action")
        return name if isinstance(name, str) else None

    @property
    def count(self) -> str | None:
        """The observation that says among how many of the first choices to choose: the setting `count`, if any."""
        name = self.settings.get("count")
        return name if isinstance(name, str) else None

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
    model: Program | None = None
    """Predicts the environment, for a head that plans. Its tensors are among those of `program`, with equal shapes."""

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
        return cls(
            action=action_from_json(raw["action"]),
            program=_program(raw["program"]),
            head=Head(**(raw["head"] | {name: tuple(raw["head"][name]) for name in ("inputs", "tensors")})),
            model=_program(raw["model"]) if "model" in raw else None,
        )


def _program(raw: dict[str, Any]) -> Program:
    return Program(
        inputs=tuple(ArraySpec(i["name"], i["dtype"], tuple(i["shape"])) for i in raw["inputs"]),
        ops=tuple(map(_op, raw["ops"])),
        tensors=tuple(Tensor(t["name"], tuple(t["shape"])) for t in raw["tensors"]),
        carry=tuple(Memory(m["name"], tuple(m["shape"]), m["next"]) for m in raw["carry"]),
        chance=tuple(Chance(c["name"], c["size"], c["distribution"]) for c in raw.get("chance", ())),
    )


def _op(raw: dict[str, Any]) -> Op:
    outputs, inputs, tensors = (tuple(raw[name]) for name in ("outputs", "inputs", "tensors"))
    return Op(raw["kind"], outputs, inputs, tensors, raw["settings"])


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
        fields = {name: getattr(value, name) for name in slots}
        # Policies that have neither keep the text, and so the hash, that they had before these fields existed.
        return {name: _plain(field) for name, field in fields.items() if field or name not in _OMITTED_IF_EMPTY}
    return value
