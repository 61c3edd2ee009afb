"""Requests and replies of Act: observations to the server, decisions back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.policy import Decision
from rl4sys.wire.arrays import require_label
from rl4sys.wire.columns import Column, Unusable
from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import training_pb2
from rl4sys.wire.segment_format import SegmentFormat

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Question:
    """Observations [N, …] to decide on; row i belongs to the stream (agent, lane + i), unless `lanes` has others."""

    agent: str
    lane: int
    step: int
    """Number of earlier decisions of each stream."""
    observation: Arrays
    carry: Arrays | None
    """Carry [N, …] after the last decision; None at the start of the episodes."""
    rows: int
    lanes: tuple[int, ...] = ()
    """The lane of each row; empty where they are lane + i."""
    steps: tuple[int, ...] = ()
    """The step of each row; empty where all have the same."""

    def streams(self, client: str) -> list[StreamKey]:
        """The stream of each row."""
        lanes = self.lanes or range(self.lane, self.lane + self.rows)
        return [StreamKey(client, self.agent, lane) for lane in lanes]


def encode_question(
    form: SegmentFormat, question: Question, session: str, schema_hash: bytes = b""
) -> training_pb2.ActRequest:
    """The request message; `schema_hash` is that of the reply to Join, unless it is the hash of `form`."""
    return training_pb2.ActRequest(
        session=session,
        schema_hash=schema_hash or form.hash,
        rows=question.rows,
        agent=question.agent,
        lane=question.lane,
        step=question.step,
        observation=_encode(form.observation, question.observation, question.rows),
        carry=() if question.carry is None else _encode(form.carry, question.carry, question.rows),
        lanes=question.lanes,
        steps=question.steps,
    )


def decode_question(form: SegmentFormat, message: training_pb2.ActRequest, max_rows: int) -> Question:
    """The question in a message, or `ContractViolation`."""
    rows = message.rows
    if not 1 <= rows <= max_rows or max(message.lane, message.step) > _LARGEST:
        raise ContractViolation(f"A request has {rows} rows, lane {message.lane}; expected 1 to {max_rows} rows.")
    lanes, steps = (_for_each_row(name, rows, getattr(message, name)) for name in ("lanes", "steps"))
    observation = _decode(form.observation, message.observation, rows)
    carry = _decode(form.carry, message.carry, rows) if message.carry else None
    agent = require_label("The agent", message.agent)
    return Question(agent, message.lane, message.step, observation, carry, rows, lanes, steps)


def encode_decision(form: SegmentFormat, decision: Decision, version: int) -> training_pb2.ActReply:
    """The reply message."""
    rows = len(decision.action)
    return training_pb2.ActReply(
        version=version,
        action=_encode((form.action,), {form.action.spec.name: decision.action}, rows)[0],
        extras=_encode(form.extras, decision.extras, rows),
        carry=_encode(form.carry, decision.carry, rows),
    )


def decode_decision(form: SegmentFormat, message: training_pb2.ActReply, rows: int) -> tuple[int, Decision]:
    """The version that decided and its decisions for each row, or `ContractViolation`."""
    action = _decode((form.action,), [message.action], rows)[form.action.spec.name]
    extras = _decode(form.extras, message.extras, rows)
    return message.version, Decision(action, extras, _decode(form.carry, message.carry, rows))


def _for_each_row(name: str, rows: int, numbers: Sequence[int]) -> tuple[int, ...]:
    if numbers and (len(numbers) != rows or max(numbers) > _LARGEST):
        raise ContractViolation(f"A request has {len(numbers)} {name} for {rows} rows; expected none, or one for each.")
    return tuple(numbers)


def _encode(columns: tuple[Column, ...], arrays: Arrays, rows: int) -> list[bytes]:
    try:
        return [column.encode(arrays[column.spec.name], rows) for column in columns]
    except (Unusable, KeyError) as error:
        raise _violation(f"got {sorted(arrays)}: {error}") from error


def _decode(columns: tuple[Column, ...], data: Sequence[bytes], rows: int) -> dict[str, Array]:
    if len(data) != len(columns):
        raise _violation(f"it has {len(data)} arrays; expected {[column.label for column in columns]}")
    arrays: dict[str, Array] = {}
    try:
        for column, part in zip(columns, data, strict=True):
            array = arrays[column.spec.name] = column.decode(part, rows)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise _violation(f"the {column.label} contains NaN or infinity")
    except Unusable as error:
        raise _violation(str(error)) from error
    return arrays


def _violation(problem: str) -> ContractViolation:
    return ContractViolation(f"A request or reply of Act breaks the agreed schema: {problem}. Join again.")
