"""The format of the segments of one learner: their schema, and how many choices an action has."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from rl4sys.experience import ArraySpec, SegmentSchema
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction, MixedAction, MultiDiscreteAction, PolicySpec
from rl4sys.wire.arrays import decode_array, decode_arrays, encode_array
from rl4sys.wire.columns import Column
from rl4sys.wire.generated import experience_pb2

_REWARD = ArraySpec("reward", "float32", ())


@dataclass(frozen=True, slots=True)
class SegmentFormat:
    """What client and server agree on at Join. Make it once and keep it: it prepares each column."""

    schema: SegmentSchema
    choices: tuple[int, ...] = ()
    """How many choices each part of an action has; empty where actions are real numbers."""
    lineage: str = ""
    """The lineage of the learner, on a server: experience of another history gets another hash, and is refused."""
    hash: bytes = field(init=False, compare=False)
    """SHA-256 of the canonical text: it differs if anything in the schema or the lineage does."""
    schema_hash: bytes = field(init=False, compare=False)
    """The same without the lineage."""
    observation: tuple[Column, ...] = field(init=False, repr=False, compare=False)
    action: Column = field(init=False, repr=False, compare=False)
    reward: Column = field(init=False, repr=False, compare=False)
    extras: tuple[Column, ...] = field(init=False, repr=False, compare=False)
    carry: tuple[Column, ...] = field(init=False, repr=False, compare=False)
    columns: int = field(init=False, repr=False, compare=False)
    """How many columns a segment has."""

    def __post_init__(self) -> None:
        prepare, schema = object.__setattr__, self.schema
        prepare(self, "hash", hashlib.sha256(self._canonical(self.lineage).encode()).digest())
        prepare(self, "schema_hash", hashlib.sha256(self._canonical("").encode()).digest())
        prepare(self, "observation", _columns("observation", schema.observation))
        prepare(self, "action", Column("action", schema.action, self.choices))
        prepare(self, "reward", Column("reward", _REWARD))
        prepare(self, "extras", _columns("extra", schema.extras))
        prepare(self, "carry", _columns("carry", schema.carry))
        prepare(self, "columns", len(self.observation) + 2 + len(self.extras) + len(self.carry))

    @classmethod
    def of(cls, spec: PolicySpec, lineage: str = "") -> SegmentFormat:
        """The format of the segments that this policy produces."""
        return cls(spec.segment_schema(), choices_of(spec.action), lineage)

    def to_message(self) -> experience_pb2.SegmentSchema:
        """The message for JoinReply."""
        schema = self.schema
        return experience_pb2.SegmentSchema(
            observation=map(encode_array, schema.observation),
            action=encode_array(schema.action),
            extras=map(encode_array, schema.extras),
            carry=map(encode_array, schema.carry),
            choices=self.choices,
        )

    @classmethod
    def from_message(cls, message: experience_pb2.SegmentSchema) -> SegmentFormat:
        """The format in a message, or `ContractViolation`."""
        schema = SegmentSchema(
            observation=decode_arrays("observation", message.observation),
            action=decode_array(message.action),
            extras=decode_arrays("extras", message.extras),
            carry=decode_arrays("carry", message.carry),
        )
        return cls(schema, tuple(message.choices))

    def _canonical(self, lineage: str) -> str:
        """JSON without spaces: arrays as [name, dtype, shape], in the order of their columns; a lineage last."""
        schema = self.schema
        groups = (schema.observation, (schema.action,), schema.extras, schema.carry)
        arrays = [[[spec.name, spec.dtype, spec.shape] for spec in group] for group in groups]
        last = [lineage] if lineage else []
        return json.dumps(["rl4sys.v1.SegmentSchema", *arrays, self.choices, *last], separators=(",", ":"))


def _columns(group: str, specs: tuple[ArraySpec, ...]) -> tuple[Column, ...]:
    return tuple(Column(f"{group} '{spec.name}'", spec) for spec in specs)


def choices_of(action: ActionSpec) -> tuple[int, ...]:
    """How many choices each part of an action has; empty where it is real numbers."""
    match action:
        case DiscreteAction(n=n):
            return (n,)
        case MultiDiscreteAction(sizes=sizes) | MixedAction(sizes=sizes):
            return sizes
        case BoxAction():
            return ()
