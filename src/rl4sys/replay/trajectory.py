"""The buffer of on-policy algorithms: experience in order, used once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays, DecidedBy, Ending, Segment, Sequences, StreamKey
from rl4sys.replay.pace import OnceFresh
from rl4sys.state import State, require


class TrajectoryBuffer:
    """Collects the segments of each stream in order and yields them as one batch when there are enough steps."""

    def __init__(self, pace: OnceFresh) -> None:
        self._pace = pace
        self._held: list[_Held] = []
        self._steps = 0
        self._added = 0
        self._too_old = 0

    def add(self, segment: Segment, age: int = 0) -> None:
        """Keep a segment for the next batch, unless its policy is too many versions old."""
        if age > self._pace.max_age:
            self._too_old += segment.steps
            return
        self._held.append(_Held(segment, age))
        self._steps += segment.steps
        self._added += segment.steps

    def due(self) -> Iterator[Sequences]:
        """One batch with everything held, if that is enough; the buffer is empty afterwards."""
        if self._is_due():
            held, self._held, self._steps = self._held, [], 0
            yield _assemble(held)

    def _is_due(self) -> bool:
        if self._steps >= self._pace.steps:
            return True
        if self._pace.episodes is None:
            return False
        return sum(held.segment.ending is not Ending.CONTINUES for held in self._held) >= self._pace.episodes

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Ignored: every step is used once."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Steps added (`added`), and steps refused because of their age (`too_old`)."""
        return {"added": self._added, "too_old": self._too_old}

    def state(self) -> State:
        """The counters and the incomplete batch."""
        return {
            "added": self._added,
            "too_old": self._too_old,
            "segments": {str(number): _to_state(held) for number, held in enumerate(self._held)},
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "added", "too_old", "segments")
        self._added, self._too_old = int(state["added"]), int(state["too_old"])
        # By number, not by position: a file may list the names in another order.
        self._held = [_from_state(state["segments"][number]) for number in sorted(state["segments"], key=int)]
        self._steps = sum(held.segment.steps for held in self._held)


class _Held(NamedTuple):
    segment: Segment
    age: int


def _assemble(held: list[_Held]) -> Sequences:
    """One row of B per stream, in the order of first arrival."""
    streams: dict[StreamKey, list[_Held]] = {}
    for item in held:
        streams.setdefault(item.segment.stream, []).append(item)
    rows = [part for row in streams.values() for part in _with_known_memory(row)]
    offsets = [_offsets(row) for row in rows]
    shape = (len(rows), max(row[-1] for row in offsets))
    template, cells = held[0].segment, shape[0] * shape[1]

    # The rows of B are concatenated here: slices of a single axis are the fastest in numpy.
    observation = {name: _zeros(cells, array) for name, array in template.observation.items()}
    extras = {name: _zeros(cells, array) for name, array in template.extras.items()}
    action, reward = _zeros(cells, template.action), _zeros(cells, template.reward)
    discount, age = np.ones(cells, np.float32), np.zeros(cells, np.int32)
    acted, is_first = np.zeros(cells, np.bool_), np.zeros(cells, np.bool_)

    for number, row in enumerate(rows):
        for offset, (segment, segment_age) in zip(offsets[number], row, strict=False):
            first = number * shape[1] + offset
            last = first + segment.steps
            for name, column in observation.items():
                # T+1 rows: a segment that follows overwrites the last one with its own first row.
                column[first : last + 1] = segment.observation[name]
            for name, column in extras.items():
                column[first:last] = segment.extras[name]
            action[first:last] = segment.action
            reward[first:last] = segment.reward
            age[first:last] = segment_age
            acted[first:last] = True
            is_first[first] = segment.start == 0
            discount[first:last] = segment.discount()

    return Sequences(
        observation=_all_per_stream(observation, shape),
        action=_per_stream(action, shape),
        reward=_per_stream(reward, shape),
        discount=_per_stream(discount, shape),
        acted=_per_stream(acted, shape),
        is_first=_per_stream(is_first, shape),
        age=_per_stream(age, shape),
        extras=_all_per_stream(extras, shape),
        carry={name: np.stack([row[0].segment.carry[name] for row in rows]) for name in template.carry},
        streams=tuple(row[0].segment.stream for row in rows),
    )


def _with_known_memory(row: list[_Held]) -> list[list[_Held]]:
    """A stream, cut where steps are missing within an episode: what the policy remembered is known there again."""
    parts = [row[:1]]
    for earlier, later in pairwise(row):
        is_gap = later.segment.start > 0 and not later.segment.follows(earlier.segment)
        if is_gap and later.segment.carry:
            parts.append([])
        parts[-1].append(later)
    return parts


def _offsets(row: list[_Held]) -> list[int]:
    """The start of each segment of one stream, and finally the total length.

    Where the next segment does not continue the previous one, a row is left for the final observation.
    """
    offsets, end = [0], row[0].segment.steps
    for earlier, later in pairwise(row):
        offsets.append(end if later.segment.follows(earlier.segment) else end + 1)
        end = offsets[-1] + later.segment.steps
    return [*offsets, end + 1]


def _zeros(cells: int, like: Array) -> Array:
    return np.zeros((cells, *like.shape[1:]), like.dtype)


def _per_stream(column: Array, shape: tuple[int, int]) -> Array:
    return column.reshape(*shape, *column.shape[1:])


def _all_per_stream(columns: Arrays, shape: tuple[int, int]) -> Arrays:
    return {name: _per_stream(column, shape) for name, column in columns.items()}


def _to_state(held: _Held) -> State:
    segment = held.segment
    return {
        "age": held.age,
        "stream": list(segment.stream),
        "episode": segment.episode,
        "start": segment.start,
        "policy_version": segment.policy_version,
        "ending": int(segment.ending),
        "observation": dict(segment.observation),
        "action": segment.action,
        "reward": segment.reward,
        "extras": dict(segment.extras),
        "carry": dict(segment.carry),
    } | _optional(segment)


def _optional(segment: Segment) -> dict[str, Any]:
    """What only some segments have: those that no policy decided, and those that are discounted by time."""
    decided_by = {"decided_by": int(segment.decided_by)} if segment.decided_by else {}
    return decided_by | ({} if segment.time_discount is None else {"time_discount": segment.time_discount})


def _from_state(saved: Mapping[str, Any]) -> _Held:
    fields = dict(saved)
    age = int(fields.pop("age"))
    fields["stream"] = StreamKey(*fields["stream"])
    fields["ending"] = Ending(fields["ending"])
    # Only states of segments that no policy decided have it.
    fields["decided_by"] = DecidedBy(fields.get("decided_by", DecidedBy.POLICY))
    return _Held(Segment(**fields), age)
