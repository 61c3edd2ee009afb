"""Policies to and from messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

from rl4sys.policy import (
    ActionSpec,
    BoxAction,
    Chance,
    DiscreteAction,
    Head,
    Memory,
    MixedAction,
    MultiDiscreteAction,
    Op,
    PolicySpec,
    Program,
    Tensor,
)
from rl4sys.policy.policy_spec import DISTRIBUTIONS, HEAD_KINDS, Distribution, HeadKind, Setting
from rl4sys.wire.arrays import decode_arrays, decode_shape, encode_array, require_label
from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import policy_pb2
from rl4sys.wire.policy_check import require_runnable

MAX_PARTS = 1 << 14
"""Ops, tensors, settings, or parts of an action."""

_HEAD_NAMES: Mapping[HeadKind, str] = {kind: f"HEAD_KIND_{kind.upper()}" for kind in HEAD_KINDS}
_HEAD_KINDS = {policy_pb2.HeadKind.Value(name): kind for kind, name in _HEAD_NAMES.items()}
_DISTRIBUTION_NAMES: Mapping[Distribution, str] = {name: f"DISTRIBUTION_{name.upper()}" for name in DISTRIBUTIONS}
_DISTRIBUTIONS = {policy_pb2.Distribution.Value(name): kind for kind, name in _DISTRIBUTION_NAMES.items()}
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(1 << 63), (1 << 63) - 1
_LARGEST_MIXED = 1 << 24
"""Choices of one part of a mixed action, which float32 holds exactly."""

T = TypeVar("T")


def encode_policy(spec: PolicySpec) -> policy_pb2.PolicySpec:
    """The message for a policy."""
    head = spec.head
    return policy_pb2.PolicySpec(
        action=encode_action(spec.action),
        program=_encode_program(spec.program),
        head=policy_pb2.Head(
            kind=_HEAD_NAMES[head.kind],
            inputs=head.inputs,
            tensors=head.tensors,
            mask=head.mask,
            settings=_encode_settings(head.settings),
        ),
        model=None if spec.model is None else _encode_program(spec.model),
    )


def decode_policy(message: policy_pb2.PolicySpec) -> PolicySpec:
    """The policy in a message, with a sound program, or `ContractViolation`."""
    spec = PolicySpec(
        action=decode_action(message.action),
        program=_decode_program(message.program),
        head=_decode_head(message.head),
        model=_decode_program(message.model) if message.HasField("model") else None,
    )
    require_runnable(spec)
    return spec


def encode_action(action: ActionSpec) -> policy_pb2.ActionSpec:
    """The message for a kind of action."""
    match action:
        case DiscreteAction(n=n, start=start):
            return policy_pb2.ActionSpec(discrete=policy_pb2.DiscreteAction(n=n, start=start))
        case MultiDiscreteAction(sizes=sizes):
            return policy_pb2.ActionSpec(multi_discrete=policy_pb2.MultiDiscreteAction(sizes=sizes))
        case BoxAction(low=low, high=high):
            return policy_pb2.ActionSpec(box=policy_pb2.BoxAction(low=low, high=high))
        case MixedAction(sizes=sizes, low=low, high=high):
            return policy_pb2.ActionSpec(mixed=policy_pb2.MixedAction(sizes=sizes, low=low, high=high))


def decode_action(message: policy_pb2.ActionSpec) -> ActionSpec:
    """The kind of action in a message, or `ContractViolation`."""
    match message.WhichOneof("kind"):
        case "discrete":
            _require_choices((message.discrete.n,))
            return DiscreteAction(message.discrete.n, message.discrete.start)
        case "multi_discrete":
            sizes = tuple(_bounded("sizes", message.multi_discrete.sizes))
            _require_choices(sizes)
            return MultiDiscreteAction(sizes)
        case "box":
            return BoxAction(*_bounds(message.box))
        case "mixed":
            sizes = tuple(_bounded("sizes", message.mixed.sizes))
            _require_choices(sizes, _LARGEST_MIXED)
            return MixedAction(sizes, *_bounds(message.mixed))
    raise ContractViolation("This version does not know the action's kind. Upgrade the older of client and server.")


def _bounds(message: policy_pb2.BoxAction | policy_pb2.MixedAction) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low, high = (tuple(_bounded("bounds", ends)) for ends in (message.low, message.high))
    # A NaN is never at most anything, so this refuses it too.
    if not low or len(low) != len(high) or not all(map(float.__le__, low, high)):
        raise ContractViolation(
            f"An action has {len(low)} lower and {len(high)} upper bounds; expected as many of both, at least one, and "
            f"no lower bound above its upper one."
        )
    return low, high


def _require_choices(sizes: tuple[int, ...], most: int = _LARGEST_INTEGER) -> None:
    if not sizes or not all(1 <= size <= most for size in sizes):
        raise ContractViolation(f"An action has {sizes[:8]} choices; expected at least one for each part.")


def _encode_program(program: Program) -> policy_pb2.Program:
    return policy_pb2.Program(
        inputs=map(encode_array, program.inputs),
        ops=map(_encode_op, program.ops),
        tensors=(policy_pb2.Tensor(name=tensor.name, shape=tensor.shape) for tensor in program.tensors),
        carry=(policy_pb2.Memory(name=m.name, shape=m.shape, next=m.next) for m in program.carry),
        chance=map(_encode_chance, program.chance),
    )


def _decode_program(message: policy_pb2.Program) -> Program:
    return Program(
        inputs=decode_arrays("observation", message.inputs),
        ops=tuple(map(_decode_op, _bounded("ops", message.ops))),
        tensors=tuple(map(_decode_tensor, _bounded("tensors", message.tensors))),
        carry=tuple(map(_decode_memory, _bounded("memories", message.carry))),
        chance=tuple(map(_decode_chance, _bounded("chance registers", message.chance))),
    )


def _encode_chance(chance: Chance) -> policy_pb2.Chance:
    return policy_pb2.Chance(name=chance.name, size=chance.size, distribution=_DISTRIBUTION_NAMES[chance.distribution])


def _decode_chance(message: policy_pb2.Chance) -> Chance:
    if message.distribution not in _DISTRIBUTIONS:
        raise ContractViolation(
            f"The distribution of '{message.name[:64]}' has the number {message.distribution}, which this version does "
            f"not know. Upgrade the client, or decide on the server."
        )
    name = require_label("A chance register", message.name)
    return Chance(name, message.size, _DISTRIBUTIONS[message.distribution])


def _encode_op(op: Op) -> policy_pb2.Op:
    return policy_pb2.Op(
        kind=op.kind,
        outputs=op.outputs,
        inputs=op.inputs,
        tensors=op.tensors,
        settings=_encode_settings(op.settings),
    )


def _decode_op(message: policy_pb2.Op) -> Op:
    return Op(
        require_label("An op", message.kind),
        tuple(_bounded("outputs", message.outputs)),
        tuple(_bounded("inputs", message.inputs)),
        tuple(_bounded("tensors", message.tensors)),
        _decode_settings(message.settings),
    )


def _decode_tensor(message: policy_pb2.Tensor) -> Tensor:
    return Tensor(require_label("A tensor", message.name), decode_shape(message.name, message.shape))


def _decode_memory(message: policy_pb2.Memory) -> Memory:
    return Memory(require_label("A memory", message.name), decode_shape(message.name, message.shape), message.next)


def _decode_head(message: policy_pb2.Head) -> Head:
    if message.kind not in _HEAD_KINDS:
        raise ContractViolation(
            f"The policy's head is of kind {message.kind}, which this version does not know. "
            f"Upgrade the client, or decide on the server."
        )
    return Head(
        kind=_HEAD_KINDS[message.kind],
        inputs=tuple(_bounded("inputs", message.inputs)),
        tensors=tuple(_bounded("tensors", message.tensors)),
        mask=message.mask if message.HasField("mask") else None,
        settings=_decode_settings(message.settings),
    )


def _encode_settings(settings: Mapping[str, Setting]) -> dict[str, policy_pb2.Setting]:
    return {name: _encode_setting(name, value) for name, value in settings.items()}


def _encode_setting(name: str, value: Setting) -> policy_pb2.Setting:
    # A bool is also an int, so it comes first.
    if isinstance(value, bool):
        return policy_pb2.Setting(truth=value)
    if isinstance(value, int):
        return policy_pb2.Setting(integer=_integer(name, value))
    if isinstance(value, float):
        return policy_pb2.Setting(real=value)
    if isinstance(value, str):
        return policy_pb2.Setting(text=value)
    if all(isinstance(item, int) for item in value):
        return policy_pb2.Setting(integers=policy_pb2.Integers(values=(_integer(name, int(item)) for item in value)))
    return policy_pb2.Setting(reals=policy_pb2.Reals(values=value))


def _integer(name: str, value: int) -> int:
    if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
        raise ContractViolation(f"Setting '{name}' is {value}; whole numbers have 64 bits. Use a float.")
    return value


def _decode_settings(settings: Mapping[str, policy_pb2.Setting]) -> dict[str, Setting]:
    if len(settings) > MAX_PARTS:
        raise ContractViolation(f"A policy has {len(settings)} settings; at most {MAX_PARTS} can be sent.")
    # By name: the order of a map is lost on the wire.
    return {name: _decode_setting(name, settings[name]) for name in sorted(settings)}


def _decode_setting(name: str, message: policy_pb2.Setting) -> Setting:
    value: Setting
    match message.WhichOneof("value"):
        case "real":
            value = message.real
        case "integer":
            value = message.integer
        case "text":
            value = message.text
        case "truth":
            value = message.truth
        case "integers":
            value = list(_bounded("numbers", message.integers.values))
        case "reals":
            value = list(_bounded("numbers", message.reals.values))
        case _:
            raise ContractViolation(f"This version does not know the kind of setting '{name}'. Upgrade the receiver.")
    numbers = value if isinstance(value, list) else [value]
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise ContractViolation(f"Setting '{name}' is {value!r}; expected finite numbers.")
    return value


def _bounded(what: str, parts: Sequence[T]) -> Sequence[T]:
    # Counted before they are listed: each part takes a hundred bytes in Python.
    if len(parts) > MAX_PARTS:
        raise ContractViolation(f"A policy has {len(parts)} {what}; at most {MAX_PARTS} can be sent.")
    return parts
