"""Packs of short segments to and from the bytes in which they are sent and logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from rl4sys.experience import Array, Ending, Segment, SegmentPack
from rl4sys.wire.arrays import require_label
from rl4sys.wire.columns import Column, Unusable
from rl4sys.wire.errors import ContractViolation, RefusalReason, SegmentRefused
from rl4sys.wire.generated import experience_pb2
from rl4sys.wire.messages import parse
from rl4sys.wire.segment_format import SegmentFormat
from rl4sys.wire.segments import DECIDER_NUMBERS, DECIDERS, ELAPSED, LARGEST

_HEADER_FIELDS = 24
"""More than a header has now, so that it may grow."""
_ENDING_SHIFT = experience_pb2.ENDING_CONTINUES - int(Ending.CONTINUES)
"""Endings have the same order on the wire and in memory."""
_LAST_ENDING = int(max(Ending)) + _ENDING_SHIFT
_Decode: TypeAlias = Callable[[Column, bytes, int], Array]


class _Header(NamedTuple):
    """Of each segment, int64 [N]; the endings are those of the wire."""

    lane: Array
    episode: Array
    start: Array
    ending: Array
    steps: Array


def encode_pack(form: SegmentFormat, segments: Sequence[Segment]) -> bytes:
    """The bytes for PushedSegment of several segments of one agent, version and decider, all with times or none.

    Raises `SegmentRefused` if one of them does not have the agreed arrays or is not finite.
    """
    first, count = segments[0], len(segments)
    steps = np.array([segment.steps for segment in segments], "<u4")
    total = int(steps.sum())
    try:
        observation = {
            column.spec.name: _joined([segment.observation[column.spec.name] for segment in segments])
            for column in form.observation
        }
        extras = {
            column.spec.name: _joined([segment.extras[column.spec.name] for segment in segments])
            for column in form.extras
        }
        carry = {
            column.spec.name: np.stack([segment.carry[column.spec.name] for segment in segments])
            for column in form.carry
        }
        action = _joined([segment.action for segment in segments])
        reward = _joined([segment.reward for segment in segments])
        _require_finite([*observation.values(), action, reward, *extras.values(), *carry.values()])
        times = [segment.elapsed for segment in segments if segment.elapsed is not None]
        return experience_pb2.SegmentPack(
            agent=require_label("The agent", first.stream.agent),
            policy_version=first.policy_version,
            decided_by=DECIDER_NUMBERS[first.decided_by],
            lane=_header_bytes(np.array([segment.stream.lane for segment in segments], "<u8")),
            episode=_header_bytes(np.array([segment.episode for segment in segments], "<u8")),
            start=_header_bytes(np.array([segment.start for segment in segments], "<u8")),
            ending=_header_bytes(np.array([segment.ending + _ENDING_SHIFT for segment in segments], "u1")),
            steps=_header_bytes(steps),
            observation=[column.encode(observation[column.spec.name], total + count) for column in form.observation],
            action=form.action.encode(action, total),
            reward=form.reward.encode(reward, total),
            extras=[column.encode(extras[column.spec.name], total) for column in form.extras],
            carry=[column.encode(carry[column.spec.name], count) for column in form.carry],
            elapsed=ELAPSED.encode(_joined(times), total) if times else b"",
        ).SerializeToString()
    except Unusable as error:
        raise SegmentRefused(error.reason, f"Segments cannot be packed: {error}.") from error
    except (KeyError, ValueError) as error:
        raise SegmentRefused(RefusalReason.MALFORMED, f"Segments cannot be packed: {error}.") from error


def decode_pack(form: SegmentFormat, data: bytes, *, client: str, count: int, max_steps: int) -> SegmentPack:
    """The pack of `count` segments that a client sent, ready to be learned from, or `SegmentRefused`.

    It is refused as a whole: `split_pack` finds the segments in it that can be used. Its arrays are read-only.
    """
    try:
        message = parse(
            experience_pb2.SegmentPack, data, most_bytes=len(data), most_fields=_HEADER_FIELDS + form.columns
        )
        pack = _pack(form, message, client, count, Column.decode)
        if len(pack.reward) > max_steps:
            raise Unusable(
                RefusalReason.TOO_LARGE, f"it has {len(pack.reward)} steps; at most {max_steps} are accepted"
            )
        require_label("The agent", message.agent)
        _require_finite(_arrays(pack))
        if pack.elapsed is not None and (pack.elapsed < 0).any():
            raise Unusable(RefusalReason.NOT_FINITE, f"elapsed contains {pack.elapsed.min()}; time runs forward")
        return pack
    except Unusable as error:
        raise _refused(error.reason, client, error) from error
    except ContractViolation as error:
        raise _refused(RefusalReason.MALFORMED, client, error) from error


def decode_checked_pack(form: SegmentFormat, data: bytes, *, client: str, count: int) -> SegmentPack:
    """The same pack from bytes that `decode_pack` accepted before, such as those of a log."""
    try:
        return _pack(form, experience_pb2.SegmentPack.FromString(data), client, count, Column.decode_checked)
    except Unusable as error:
        raise _refused(error.reason, client, error) from error


def split_pack(data: bytes, count: int) -> list[bytes]:
    """The bytes of each segment of a pack, as if it had been sent alone, or `ContractViolation`.

    It needs no schema, so that a client can send what is in its outbox to a server that accepts no packs.
    """
    try:
        message = experience_pb2.SegmentPack.FromString(data)
        header = _header(message, count)
    except (DecodeError, Unusable) as error:
        raise ContractViolation(f"{len(data)} bytes are not a pack of {count} segments: {error}.") from error
    ends = np.cumsum(header.steps)
    total = int(ends[-1])
    observation = [_Rows(part, total + count) for part in message.observation]
    action, reward, elapsed = (_Rows(part, total) for part in (message.action, message.reward, message.elapsed))
    extras = [_Rows(part, total) for part in message.extras]
    carry = [_Rows(part, count) for part in message.carry]
    split = []
    for number, (end, steps) in enumerate(zip(ends.tolist(), header.steps.tolist(), strict=True)):
        begin = end - steps
        columns = [rows.cut(begin + number, end + number + 1) for rows in observation]
        columns += [rows.cut(begin, end) for rows in (action, reward, *extras)]
        columns += [rows.cut(number, number + 1) for rows in carry]
        alone = experience_pb2.Segment(
            agent=message.agent,
            lane=int(header.lane[number]),
            episode=int(header.episode[number]),
            start=int(header.start[number]),
            policy_version=message.policy_version,
            ending=int(header.ending[number]),  # type: ignore[arg-type]  # the stubs want a name
            steps=steps,
            columns=columns,
            decided_by=message.decided_by,
            elapsed=elapsed.cut(begin, end),
        )
        split.append(alone.SerializeToString())
    return split


def packed_steps(data: bytes, count: int) -> int:
    """The steps in the header of a pack; 0 if it cannot be parsed, which is refused later."""
    try:
        return int(_header(experience_pb2.SegmentPack.FromString(data), count).steps.sum())
    except (DecodeError, Unusable):
        return 0


class _Rows:
    """An array of unknown type, of which only the number of rows is known."""

    def __init__(self, data: bytes, rows: int) -> None:
        if len(data) % rows:
            raise ContractViolation(f"An array of a pack has {len(data)} bytes; expected a multiple of {rows} rows.")
        self._data, self._width = data, len(data) // rows

    def cut(self, first: int, last: int) -> bytes:
        return self._data[first * self._width : last * self._width]


def _pack(
    form: SegmentFormat, message: experience_pb2.SegmentPack, client: str, count: int, decode: _Decode
) -> SegmentPack:
    header = _header(message, count)
    if message.policy_version > LARGEST or message.decided_by not in DECIDERS:
        raise Unusable(RefusalReason.MALFORMED, "this version does not know its policy version or decided_by")
    for group, parts, columns in (
        ("observations", message.observation, form.observation),
        ("extras", message.extras, form.extras),
        ("carry", message.carry, form.carry),
    ):
        if len(parts) != len(columns):
            raise Unusable(RefusalReason.MALFORMED, f"it has {len(parts)} {group}; expected {len(columns)}")
    total = int(header.steps.sum())
    return SegmentPack(
        client=client,
        agent=message.agent,
        policy_version=message.policy_version,
        decided_by=DECIDERS[message.decided_by],
        lane=header.lane,
        episode=header.episode,
        start=header.start,
        ending=header.ending - _ENDING_SHIFT,
        steps=header.steps,
        observation=_group(form.observation, message.observation, total + count, decode),
        action=decode(form.action, message.action, total),
        reward=decode(form.reward, message.reward, total),
        extras=_group(form.extras, message.extras, total, decode),
        carry=_group(form.carry, message.carry, count, decode),
        elapsed=decode(ELAPSED, message.elapsed, total) if message.elapsed else None,
    )


def _header(message: experience_pb2.SegmentPack, count: int) -> _Header:
    lane, episode, start = (
        _entries(name, data, "<u8", count)
        for name, data in (("lane", message.lane), ("episode", message.episode), ("start", message.start))
    )
    ending, steps = _entries("ending", message.ending, "u1", count), _entries("steps", message.steps, "<u4", count)
    # Read as signed, a number that is too large is negative.
    if min(int(each.min()) for each in (lane, episode, start)) < 0:
        raise Unusable(RefusalReason.MALFORMED, f"a number in its header is larger than {LARGEST}")
    if ending.min() < experience_pb2.ENDING_CONTINUES or ending.max() > _LAST_ENDING:
        raise Unusable(RefusalReason.MALFORMED, f"this version does not know ending {ending.max()}")
    if steps.min() < 1:
        raise Unusable(RefusalReason.MALFORMED, "one of its segments has no steps")
    return _Header(lane, episode, start, ending, steps)


def _entries(name: str, data: bytes, kind: str, count: int) -> Array:
    """A header array as int64, one entry for each segment."""
    width = np.dtype(kind).itemsize
    if len(data) not in (width, count * width):
        raise Unusable(
            RefusalReason.MALFORMED, f"its {name} has {len(data)} bytes; expected {width}, or {count} times {width}"
        )
    entries = np.frombuffer(data, kind).astype(np.int64)
    return entries if len(entries) == count else np.repeat(entries, count)


def _header_bytes(entries: Array) -> bytes:
    """One entry alone where all are equal."""
    return entries[:1].tobytes() if (entries == entries[0]).all() else entries.tobytes()


def _joined(arrays: Sequence[Array]) -> Array:
    return np.concatenate(arrays)


def _group(columns: tuple[Column, ...], data: Sequence[bytes], rows: int, decode: _Decode) -> dict[str, Array]:
    return {column.spec.name: decode(column, part, rows) for column, part in zip(columns, data, strict=True)}


def _arrays(pack: SegmentPack) -> Iterator[Array]:
    yield from pack.observation.values()
    yield from (pack.action, pack.reward)
    yield from pack.extras.values()
    yield from pack.carry.values()
    if pack.elapsed is not None:
        yield pack.elapsed


def _require_finite(arrays: Sequence[Array] | Iterator[Array]) -> None:
    if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in arrays):
        raise Unusable(RefusalReason.NOT_FINITE, "one of its arrays contains NaN or infinity")


def _refused(reason: RefusalReason, client: str, problem: Exception) -> SegmentRefused:
    return SegmentRefused(reason, f"Client '{client}' sent a pack that cannot be learned from: {problem}.")
