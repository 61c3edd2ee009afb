"""Many short segments with their arrays one after the other, so that they are handled together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from rl4sys.experience.segment import Array, Arrays, DecidedBy, Ending, Segment, StreamKey


@dataclass(frozen=True, slots=True)
class SegmentPack:
    """N segments of one agent and one policy version, in the order in which they were recorded.

    With T steps in all, observations have T + N rows: each segment has one more than it has steps. Actions, rewards and
    extras have T rows, the carry has N. What holds for one segment alone is in the arrays [N] of its header.
    """

    client: str
    agent: str
    policy_version: int
    decided_by: DecidedBy
    lane: Array
    """[N], as `episode`, `start`, `ending` and `steps`: int64."""
    episode: Array
    start: Array
    ending: Array
    steps: Array
    observation: Arrays
    action: Array
    reward: Array
    extras: Arrays
    carry: Arrays
    elapsed: Array | None = None
    ends: Array = field(init=False, repr=False, compare=False)
    """[N]: the steps of each segment and of all before it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", np.cumsum(self.steps))

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def has_whole_episodes(self) -> bool:
        """Whether each segment is an episode from its beginning to its end."""
        return not self.start.any() and not (self.ending == Ending.CONTINUES).any()

    @property
    def final_rows(self) -> Array:
        """[N]: the rows of the observations after the last action of each segment."""
        rows: Array = self.ends + np.arange(len(self))
        return rows

    @property
    def acted_rows(self) -> Array:
        """[T]: the rows of the observations in which an action was chosen."""
        rows: Array = np.arange(len(self.reward)) + np.repeat(np.arange(len(self)), self.steps)
        return rows

    @property
    def discount(self) -> Array:
        """[T]: 1, but 0 where an episode terminated."""
        discount = np.ones(len(self.reward), np.float32)
        discount[self.ends[self.ending == Ending.TERMINATED] - 1] = 0.0
        return discount

    def segment(self, number: int) -> Segment:
        """One of the segments, as a view."""
        steps = slice(int(self.ends[number] - self.steps[number]), int(self.ends[number]))
        rows = slice(steps.start + number, steps.stop + number + 1)
        return Segment(
            stream=StreamKey(self.client, self.agent, int(self.lane[number])),
            episode=int(self.episode[number]),
            start=int(self.start[number]),
            policy_version=self.policy_version,
            ending=Ending(int(self.ending[number])),
            observation=_cut(self.observation, rows),
            action=self.action[steps],
            reward=self.reward[steps],
            extras=_cut(self.extras, steps),
            carry={name: array[number] for name, array in self.carry.items()},
            decided_by=self.decided_by,
            elapsed=None if self.elapsed is None else self.elapsed[steps],
        )

    def segments(self) -> Iterator[Segment]:
        """All segments, in their order."""
        return (self.segment(number) for number in range(len(self)))

    def part(self, first: int, last: int) -> SegmentPack:
        """The segments from `first` on and before `last`, as a view."""
        if first == 0 and last == len(self):
            return self
        steps = slice(int(self.ends[first - 1]) if first else 0, int(self.ends[last - 1]) if last else 0)
        rows = slice(steps.start + first, steps.stop + last)
        one = slice(first, last)
        return SegmentPack(
            client=self.client,
            agent=self.agent,
            policy_version=self.policy_version,
            decided_by=self.decided_by,
            lane=self.lane[one],
            episode=self.episode[one],
            start=self.start[one],
            ending=self.ending[one],
            steps=self.steps[one],
            observation=_cut(self.observation, rows),
            action=self.action[steps],
            reward=self.reward[steps],
            extras=_cut(self.extras, steps),
            carry=_cut(self.carry, one),
            elapsed=None if self.elapsed is None else self.elapsed[steps],
        )


def _cut(arrays: Mapping[str, Array], rows: slice) -> dict[str, Array]:
    return {name: array[rows] for name, array in arrays.items()}
