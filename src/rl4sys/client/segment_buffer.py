"""Records the steps of a segment until it is sealed; rewards can be added to it until then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, Arrays, DecidedBy, Ending, Segment, StreamKey

_GROWTH = 4
_NO_TIMES: Array = np.zeros(0, np.float32)
"""Shared by all buffers without times."""
NO_CARRY: dict[str, Array] = {}
"""The memory of a policy that has none."""
_MOST_SPARE = 32
"""Buffers that are kept for later segments; the others are freed."""
_MOST_SHORT = 1024
"""The same for those of short episodes, of which many may be open at once."""
_SHORT_BYTES = 1024
"""Bytes of the observations of a short one."""


class RecordedStep(NamedTuple):
    """One decision with all that a segment holds of it, but for its reward."""

    snapshot: Snapshot
    observation: Arrays
    action: Array
    extras: Arrays
    carry: Arrays
    """Policy memory before the decision."""


class SegmentBuffer:
    """Columns for up to `length` steps of one policy version. They begin with one row, grow and are reused.

    Row `count` of the observations is the present observation, or the final one after the last step.
    """

    __slots__ = (
        *("acting", "snapshot", "decided_by", "recorded", "ending", "closed_at", "length", "rows", "start", "count"),
        *("observation", "reward", "carry", "write", "finish", "_action", "_elapsed", "_extras", "is_timed"),
        *("began_at", "_settled", "native_columns"),
    )

    def __init__(self, snapshot: Snapshot, length: int) -> None:
        interface = snapshot.interface
        schema = interface.form.schema
        self.acting: ActingPlan | None = None
        """The plan by which a policy in this process decides the steps; None if something else does."""
        self.snapshot = snapshot
        self.decided_by = DecidedBy.POLICY
        self.recorded = True
        """Whether a segment is made of it."""
        self.ending = Ending.CONTINUES
        self.closed_at = 0.0
        """When the last step was taken, if rewards are accepted by time."""
        self.began_at = 0.0
        """When it was begun, if segments are cut by time."""
        self._settled: set[int] | None = None
        """The steps that get no more rewards; None before there is one."""
        self.length = length
        self.rows = 1
        """Steps that fit at present."""
        self.start = 0
        """Index within the episode of the first step."""
        self.count = 0
        self.observation = {s.name: np.zeros((2, *s.shape), s.dtype) for s in schema.observation}
        self.reward = np.zeros(1, np.float32)
        self.carry: Arrays = {}
        """Policy memory before the first step."""
        self.write: Callable[[Arrays, int, Any, Any], None] = interface.reader.write
        self.finish: Callable[[Array], Any] = interface.actions.finish
        self.is_timed = False
        """Whether its steps have times."""
        self._elapsed = _NO_TIMES
        """As long as the other columns if its steps have times."""
        self._action = np.zeros((1, *schema.action.shape), schema.action.dtype)
        self._extras = tuple((s.name, np.zeros((1, *s.shape), s.dtype)) for s in schema.extras)
        self.native_columns: Any = None
        """The same columns as the native path sees them; None until it needs them."""

    def begin(self, plan: ActingPlan, start: int, carry: Arrays, *, recorded: bool) -> SegmentBuffer:
        """Clear the buffer for a new segment of the same schema."""
        self.adopt(plan)
        self.recorded, self.ending, self.is_timed = recorded, Ending.CONTINUES, False
        self.begin_again(start, carry)
        return self

    def begin_again(self, start: int, carry: Arrays) -> None:
        """Forget all steps."""
        self.start, self.count = start, 0
        self._settled = None
        self.carry = {name: array[0].copy() for name, array in carry.items()} if carry else carry
        self.reward.fill(0.0)

    def leave_behind(self, start: int, count: int) -> None:
        """Begin at a later step, since those before it were taken out; the first `count` rows are those from it on."""
        self.start, self.count, self._settled = start, count, None

    def adopt(self, plan: ActingPlan) -> None:
        """Use an empty buffer, or one whose policy did not change, under another plan."""
        if plan.snapshot is not None:
            self.snapshot = plan.snapshot
        self.decided_by = plan.decided_by
        self.acting = plan if plan.decided_by is DecidedBy.POLICY and not plan.asks else None

    @property
    def end(self) -> int:
        """Index within the episode of the step after the last one."""
        return self.start + self.count

    def grow(self) -> None:
        """Make room for more steps."""
        rows = self.rows = min(self.length, _GROWTH * self.rows)
        self.observation = {name: _longer(column, rows + 1) for name, column in self.observation.items()}
        self.reward, self._action = _longer(self.reward, rows), _longer(self._action, rows)
        self._extras = tuple((name, _longer(column, rows)) for name, column in self._extras)
        self.native_columns = None
        if self.is_timed:
            self._elapsed = _longer(self._elapsed, rows)

    @property
    def is_short(self) -> bool:
        """Whether its arrays are small."""
        return sum([column.nbytes for column in self.observation.values()]) <= _SHORT_BYTES

    @property
    def decision_columns(self) -> tuple[Array, Array | None]:
        """Actions and, if the policy notes them, log-probabilities."""
        return self._action, self._extras[0][1] if self._extras else None

    def settle(self, index: int) -> None:
        """Note that the step with this index within the episode gets no more rewards."""
        if self._settled is None:
            self._settled = set()
        self._settled.add(index)

    @property
    def is_settled(self) -> bool:
        """Whether no step gets any more rewards."""
        return self._settled is not None and len(self._settled) == self.count

    def note_elapsed(self, seconds: float) -> None:
        """Note the time from the last step to the observation that follows it."""
        self._elapsed[self.count - 1] = seconds

    def begin_times(self) -> None:
        """Note times from the first step on."""
        self.is_timed = True
        if len(self._elapsed) < self.rows:
            self._elapsed = np.zeros(self.rows, np.float32)

    def record(self, action: Any, extras: Mapping[str, Any], of: int = 0) -> None:
        """Record row `of` of a decision for the present row."""
        row = self.count
        self._action[row] = action[of]
        for name, column in self._extras:
            column[row] = extras[name][of]
        self.count = row + 1

    def record_given(self, action: Array) -> None:
        """Record what the fallback or the system itself decided for the present row."""
        row = self.count
        self._action[row] = action
        for _, column in self._extras:
            column[row] = 0
        self.count = row + 1

    def last_action(self) -> Any:
        """The action of the last step, for the system."""
        return self.finish(self._action[self.count - 1 : self.count])

    def first_step(self) -> RecordedStep:
        """A copy of the first row."""
        return RecordedStep(
            snapshot=self.snapshot,
            observation={name: column[0].copy() for name, column in self.observation.items()},
            action=self._action[0].copy(),
            extras={name: column[0].copy() for name, column in self._extras},
            carry=self.carry,
        )

    def continue_from(self, earlier: SegmentBuffer) -> None:
        """Begin with the observation that followed the last step of an earlier buffer."""
        for name, column in self.observation.items():
            column[0] = earlier.observation[name][earlier.count]

    def repeat_last(self) -> None:
        """Use the last observation as the final one: after a termination its value does not matter."""
        for column in self.observation.values():
            column[self.count] = column[self.count - 1]

    def seal(self, stream: StreamKey, episode: int) -> Segment:
        """The recorded steps as a segment, with copies of the arrays."""
        steps = self.count
        return Segment(
            stream=stream,
            episode=episode,
            start=self.start,
            policy_version=self.snapshot.version,
            ending=self.ending,
            observation={name: column[: steps + 1].copy() for name, column in self.observation.items()},
            action=self._action[:steps].copy(),
            reward=self.reward[:steps].copy(),
            extras={name: column[:steps].copy() for name, column in self._extras},
            carry=self.carry,
            decided_by=self.decided_by,
            elapsed=self._elapsed[:steps].copy() if self.is_timed else None,
        )


class SegmentBufferPool:
    """Buffers that are free, shared by all episodes of an agent. Thread-safe: a list takes and gives atomically."""

    def __init__(self) -> None:
        self._spare: list[SegmentBuffer] = []

    def take(self, snapshot: Snapshot, length: int) -> SegmentBuffer:
        """A buffer to record into, reused where one is free."""
        while self._spare:
            try:
                buffer = self._spare.pop()
            except IndexError:
                # Another thread was faster.
                break
            if buffer.snapshot.interface is snapshot.interface and buffer.length == length:
                return buffer
        return SegmentBuffer(snapshot, length)

    def give_back(self, buffer: SegmentBuffer) -> None:
        """Take back a buffer whose contents were copied or are not needed."""
        kept = len(self._spare)
        if kept < _MOST_SPARE or (kept < _MOST_SHORT and buffer.is_short):
            self._spare.append(buffer)


def _longer(column: Array, rows: int) -> Array:
    longer = np.zeros((rows, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
