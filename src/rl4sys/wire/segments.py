"""Segments to and from the bytes in which they are sent and logged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rl4sys.experience import Array, ArraySpec, DecidedBy, Ending, SchemaMismatch, Segment, StreamKey
from rl4sys.wire.arrays import require_label
from rl4sys.wire.columns import Column, Unusable
from rl4sys.wire.errors import ContractViolation, RefusalReason, SegmentRefused
from rl4sys.wire.generated import experience_pb2
from rl4sys.wire.messages import parse
from rl4sys.wire.segment_format import SegmentFormat

LARGEST = (1 << 63) - 1
"""The largest number in a header: beyond it other languages and databases would wrap."""

_HEADER_FIELDS = 16
"""More than a header has now, so that it may grow."""

_ENDING_NUMBERS = {
    Ending.CONTINUES: experience_pb2.ENDING_CONTINUES,
    Ending.TERMINATED: experience_pb2.ENDING_TERMINATED,
    Ending.TRUNCATED: experience_pb2.ENDING_TRUNCATED,
}
_ENDINGS = {number: ending for ending, number in _ENDING_NUMBERS.items()}
DECIDER_NUMBERS = {
    DecidedBy.POLICY: experience_pb2.DECIDED_BY_UNSPECIFIED,
    DecidedBy.FALLBACK: experience_pb2.DECIDED_BY_FALLBACK,
    DecidedBy.INCUMBENT: experience_pb2.DECIDED_BY_INCUMBENT,
}
DECIDERS = {number: decider for decider, number in DECIDER_NUMBERS.items()}
ELAPSED = Column("elapsed", ArraySpec("elapsed", "float32", ()))
_Decode: TypeAlias = Callable[[Column, bytes, int], Array]


def encode_segment(form: SegmentFormat, segment: Segment) -> bytes:
    """The bytes for PushedSegment. Raises `SegmentRefused` if the segment does not have the agreed arrays.

    NaN and infinity are left for the receiver to refuse; `SegmentSchema.check` finds them here.
    """
    steps = segment.steps
    rows = steps + 1
    try:
        _require_as_many(form, segment)
        columns = [column.encode(segment.observation[column.spec.name], rows) for column in form.observation]
        columns.append(form.action.encode(segment.action, steps))
        columns.append(form.reward.encode(segment.reward, steps))
        columns += [column.encode(segment.extras[column.spec.name], steps) for column in form.extras]
        columns += [column.encode(segment.carry[column.spec.name][None], 1) for column in form.carry]
        return experience_pb2.Segment(
            agent=require_label("The agent", segment.stream.agent),
            lane=segment.stream.lane,
            episode=segment.episode,
            start=segment.start,
            policy_version=segment.policy_version,
            ending=_ENDING_NUMBERS[segment.ending],
            steps=steps,
            columns=columns,
            decided_by=DECIDER_NUMBERS[segment.decided_by],
            elapsed=b"" if segment.elapsed is None else ELAPSED.encode(segment.elapsed, steps),
        ).SerializeToString()
    except Unusable as error:
        raise _refused(error.reason, segment.stream.client, "recorded a segment", _advised(error)) from error
    except (KeyError, ValueError) as error:
        problem = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise _refused(RefusalReason.MALFORMED, segment.stream.client, "recorded a segment", problem) from error


def decode_segment(form: SegmentFormat, data: bytes, *, client: str, sequence: int, max_steps: int) -> Segment:
    """The segment that a client sent, ready to be learned from, or `SegmentRefused`.

    Its arrays are read-only. The length of each column is checked before it is used, and nothing is allocated beyond
    one copy of `data`, except that narrowed actions get their own type back.
    """
    try:
        message = _checked(form, data, max_steps)
        segment = _segment(form, message, client, Column.decode)
        form.schema.check(segment)
        return segment
    except Unusable as error:
        raise _refused(error.reason, client, f"sent segment {sequence}", _advised(error)) from error
    except SchemaMismatch as error:
        # Names, shapes and types are right by now: only the numbers themselves can still be wrong.
        raise _refused(RefusalReason.NOT_FINITE, client, f"sent segment {sequence}", str(error)) from error
    except ContractViolation as error:
        raise _refused(RefusalReason.MALFORMED, client, f"sent segment {sequence}", str(error)) from error


def decode_checked_segment(form: SegmentFormat, data: bytes, *, client: str) -> Segment:
    """The same segment from bytes that `decode_segment` accepted before, such as those of a log.

    Names and values are not checked again, the number and lengths of columns are: `SegmentRefused` if the format has
    changed since.
    """
    try:
        return _segment(form, experience_pb2.Segment.FromString(data), client, Column.decode_checked)
    except Unusable as error:
        raise _refused(error.reason, client, "has a segment in the log", f"{error}. Its format has changed.") from error


def _checked(form: SegmentFormat, data: bytes, max_steps: int) -> experience_pb2.Segment:
    """The message, if its header can be used."""
    message = parse(experience_pb2.Segment, data, most_bytes=len(data), most_fields=_HEADER_FIELDS + form.columns)
    if message.steps > max_steps:
        raise Unusable(RefusalReason.TOO_LARGE, f"it has {message.steps} steps; at most {max_steps} are accepted")
    if max(message.lane, message.episode, message.start, message.policy_version) > LARGEST:
        raise Unusable(RefusalReason.MALFORMED, f"a number in its header is larger than {LARGEST}")
    if message.ending not in _ENDINGS:
        raise Unusable(RefusalReason.MALFORMED, f"this version does not know ending {message.ending}")
    if message.decided_by not in DECIDERS:
        raise Unusable(RefusalReason.MALFORMED, f"this version does not know decided_by {message.decided_by}")
    require_label("The agent", message.agent)
    return message


def _segment(form: SegmentFormat, message: experience_pb2.Segment, client: str, decode: _Decode) -> Segment:
    columns, steps = list(message.columns), message.steps
    if steps == 0 or len(columns) != form.columns:
        raise Unusable(
            RefusalReason.MALFORMED,
            f"it has {steps} steps and {len(columns)} columns; expected at least one step and {form.columns} columns",
        )
    action = len(form.observation)
    extras = action + 2
    carry = extras + len(form.extras)
    return Segment(
        StreamKey(client, message.agent, message.lane),
        message.episode,
        message.start,
        message.policy_version,
        _ENDINGS[message.ending],
        _group(form.observation, columns[:action], steps + 1, decode),
        decode(form.action, columns[action], steps),
        decode(form.reward, columns[action + 1], steps),
        _group(form.extras, columns[extras:carry], steps, decode),
        {
            column.spec.name: decode(column, part, 1).reshape(column.spec.shape)
            for column, part in zip(form.carry, columns[carry:], strict=True)
        },
        DECIDERS[message.decided_by],
        decode(ELAPSED, message.elapsed, steps) if message.elapsed else None,
    )


def _group(columns: tuple[Column, ...], data: Sequence[bytes], rows: int, decode: _Decode) -> dict[str, Array]:
    return {column.spec.name: decode(column, part, rows) for column, part in zip(columns, data, strict=True)}


def _require_as_many(form: SegmentFormat, segment: Segment) -> None:
    """An array that was not agreed on would otherwise be left out silently."""
    groups = ((segment.observation, form.observation), (segment.extras, form.extras), (segment.carry, form.carry))
    for arrays, columns in groups:
        if len(arrays) > len(columns):
            raise ContractViolation(f"it has arrays {sorted(arrays)}; {[c.spec.name for c in columns]} were agreed on")


def _advised(error: Unusable) -> str:
    if error.reason is RefusalReason.TOO_LARGE:
        return f"{error}. Cut episodes into segments within the limits that Join gave."
    return f"{error}. Rejoin after changing the observation or the action, or choose another policy_id."


def _refused(reason: RefusalReason, client: str, did: str, problem: str) -> SegmentRefused:
    return SegmentRefused(reason, f"Client '{client}' {did} that cannot be learned from: {problem}")
