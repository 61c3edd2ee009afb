"""Records the steps of a segment until it is sealed; rewards can be added to it until then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, Arrays, Ending, Segment, StreamKey
from rl4sys.policy import Decision


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One decision with all that a segment holds of it, but for its reward."""

    snapshot: Snapshot
    observation: Arrays
    action: Array
    extras: Arrays
    carry: Arrays
    """Policy memory before the decision."""


class SegmentBuffer:
    """Columns for up to `length` steps of one policy version, allocated once and reused.

    Row `count` of the observations is the present observation, or the final one after the last step.
    """

    def __init__(self, snapshot: Snapshot, length: int) -> None:
        schema = snapshot.form.schema
        self.snapshot = snapshot
        self.length = length
        self.start = 0
        """Index within the episode of the first step."""
        self.count = 0
        self.observation = {s.name: np.zeros((length + 1, *s.shape), s.dtype) for s in schema.observation}
        self.reward = np.zeros(length, np.float32)
        self.carry: dict[str, Array] = {}
        """Policy memory before the first step."""
        self._action = np.zeros((length, *schema.action.shape), schema.action.dtype)
        self._extras = {s.name: np.zeros((length, *s.shape), s.dtype) for s in schema.extras}
        self._noted = list(self._extras.items())

    def begin(self, snapshot: Snapshot, start: int, carry: Arrays) -> SegmentBuffer:
        """Clear the buffer for a new segment of the same schema."""
        self.snapshot, self.start, self.count = snapshot, start, 0
        self.carry = {name: array[0].copy() for name, array in carry.items()}
        self.reward.fill(0.0)
        return self

    @property
    def end(self) -> int:
        """Index within the episode of the step after the last one."""
        return self.start + self.count

    def record(self, decision: Decision) -> None:
        """Record the decision for the present row."""
        row = self.count
        self._action[row] = decision.action[0]
        for name, column in self._noted:
            column[row] = decision.extras[name][0]
        self.count = row + 1

    def first_step(self) -> RecordedStep:
        """A copy of the first row."""
        return RecordedStep(
            snapshot=self.snapshot,
            observation={name: column[0].copy() for name, column in self.observation.items()},
            action=self._action[0].copy(),
            extras={name: column[0].copy() for name, column in self._noted},
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

    def seal(self, stream: StreamKey, episode: int, ending: Ending) -> Segment:
        """The recorded steps as a segment, with copies of the arrays."""
        steps = self.count
        return Segment(
            stream=stream,
            episode=episode,
            start=self.start,
            policy_version=self.snapshot.version,
            ending=ending,
            observation={name: column[: steps + 1].copy() for name, column in self.observation.items()},
            action=self._action[:steps].copy(),
            reward=self.reward[:steps].copy(),
            extras={name: column[:steps].copy() for name, column in self._noted},
            carry=self.carry,
        )
