"""Segments to and from the bytes in which they are kept, sent and logged."""

from __future__ import annotations

from rl4sys.experience import Array, Ending, SchemaMismatch, Segment, StreamKey
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


def encode_segment(form: SegmentFormat, segment: Segment) -> bytes:
    """The bytes for PushedSegment. Raises `SegmentRefused` where the segment does not have the agreed arrays.

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
        return _decode(form, data, client, max_steps)
    except Unusable as error:
        raise _refused(error.reason, client, f"sent segment {sequence}", _advised(error)) from error
    except SchemaMismatch as error:
        # Names, shapes and types are right by now: only the numbers themselves can still be wrong.
        raise _refused(RefusalReason.NOT_FINITE, client, f"sent segment {sequence}", str(error)) from error
    except ContractViolation as error:
        raise _refused(RefusalReason.MALFORMED, client, f"sent segment {sequence}", str(error)) from error


def _decode(form: SegmentFormat, data: bytes, client: str, max_steps: int) -> Segment:
    observations, extras = len(form.observation), len(form.extras)
    expected = observations + 2 + extras + len(form.carry)
    message = parse(experience_pb2.Segment, data, most_bytes=len(data), most_fields=_HEADER_FIELDS + expected)
    columns = list(message.columns)
    steps = message.steps
    if steps == 0 or len(columns) != expected:
        raise Unusable(
            RefusalReason.MALFORMED,
            f"it has {steps} steps and {len(columns)} columns; expected at least one step and {expected} columns",
        )
    if steps > max_steps:
        raise Unusable(RefusalReason.TOO_LARGE, f"it has {steps} steps; at most {max_steps} are taken")
    lane, episode, start, version = message.lane, message.episode, message.start, message.policy_version
    if max(lane, episode, start, version) > LARGEST:
        raise Unusable(RefusalReason.MALFORMED, f"a number in its header is larger than {LARGEST}")
    if message.ending not in _ENDINGS:
        raise Unusable(RefusalReason.MALFORMED, f"ending {message.ending} is none that this version knows")
    after = observations + 2 + extras
    segment = Segment(
        StreamKey(client, require_label("The agent", message.agent), lane),
        episode,
        start,
        version,
        _ENDINGS[message.ending],
        _decode_group(form.observation, columns[:observations], steps + 1),
        form.action.decode(columns[observations], steps),
        form.reward.decode(columns[observations + 1], steps),
        _decode_group(form.extras, columns[observations + 2 : after], steps),
        {
            c.spec.name: c.decode(data, 1).reshape(c.spec.shape)
            for c, data in zip(form.carry, columns[after:], strict=True)
        },
    )
    form.schema.check(segment)
    return segment


def _decode_group(columns: tuple[Column, ...], data: list[bytes], rows: int) -> dict[str, Array]:
    return {column.spec.name: column.decode(part, rows) for column, part in zip(columns, data, strict=True)}


def _require_as_many(form: SegmentFormat, segment: Segment) -> None:
    """An array that nobody agreed on would otherwise stay behind unnoticed."""
    groups = ((segment.observation, form.observation), (segment.extras, form.extras), (segment.carry, form.carry))
    for arrays, columns in groups:
        if len(arrays) > len(columns):
            raise ContractViolation(f"it has arrays {sorted(arrays)}; {[c.spec.name for c in columns]} were agreed on")


def _advised(error: Unusable) -> str:
    if error.reason is RefusalReason.TOO_LARGE:
        return f"{error}. Cut episodes into segments within the limits that Join gave."
    return f"{error}. Rejoin after changing what is observed or done, or choose another policy_id."


def _refused(reason: RefusalReason, client: str, did: str, problem: str) -> SegmentRefused:
    return SegmentRefused(reason, f"Client '{client}' {did} that cannot be learned from: {problem}")
