"""Steps of many lanes in time order, and how they are cut into segments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from rl4sys.experience import Array, ArraySpec, Ending, Segment, StreamKey
from rl4sys.policy import PolicySpec, action_array


@dataclass(frozen=True, slots=True)
class Rollout:
    """`steps` vector steps of N lanes, one preallocated array per column, time first.

    Row t of an observation is what the policy saw; row t of `final.…` is what followed, where an episode ended.
    """

    columns: Mapping[str, Array]
    _groups: dict[str, Mapping[str, Array]] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def specs(cls, policy: PolicySpec, lanes: int, steps: int, *, timed: bool = False) -> tuple[ArraySpec, ...]:
        """Name, type and full shape of every column; `timed` adds the seconds that each step took."""
        schema = policy.segment_schema()
        action = action_array(policy.action)
        return (
            *(ArraySpec(f"observation.{a.name}", a.dtype, (steps + 1, lanes, *a.shape)) for a in schema.observation),
            *(ArraySpec(f"final.{a.name}", a.dtype, (steps, lanes, *a.shape)) for a in schema.observation),
            *(ArraySpec(f"extras.{a.name}", a.dtype, (steps, lanes, *a.shape)) for a in schema.extras),
            *(ArraySpec(f"carry.{a.name}", a.dtype, (lanes, *a.shape)) for a in schema.carry),
            ArraySpec("action", action.dtype, (steps, lanes, *action.shape)),
            ArraySpec("reward", "float32", (steps, lanes)),
            ArraySpec("ending", "uint8", (steps, lanes)),
            ArraySpec("acted", "bool", (steps, lanes)),
            ArraySpec("episode", "int64", (lanes,)),
            ArraySpec("start", "int64", (lanes,)),
            ArraySpec("version", "int64", (1,)),
            *([ArraySpec("elapsed", "float32", (steps, lanes))] if timed else []),
        )

    @classmethod
    def allocate(cls, specs: tuple[ArraySpec, ...], memory: memoryview | None = None) -> Rollout:
        """Zeroed columns, in the given memory if there is any."""
        if memory is None:
            return cls({spec.name: np.zeros(spec.shape, spec.dtype) for spec in specs})
        columns, offset = {}, 0
        for spec in specs:
            count = math.prod(spec.shape)
            columns[spec.name] = np.frombuffer(memory, spec.dtype, count, offset).reshape(spec.shape)
            offset += _aligned(count * np.dtype(spec.dtype).itemsize)
        return cls(columns)

    @staticmethod
    def size(specs: tuple[ArraySpec, ...]) -> int:
        """Bytes that `allocate` needs."""
        return sum(_aligned(math.prod(spec.shape) * np.dtype(spec.dtype).itemsize) for spec in specs)

    def group(self, prefix: str) -> Mapping[str, Array]:
        """The columns `prefix.NAME` by NAME."""
        group = self._groups.get(prefix)
        if group is None:
            parts = ((name.partition("."), column) for name, column in self.columns.items())
            # Kept: where every step is learned from at once, a rollout is a single step.
            group = self._groups[prefix] = {name: column for (first, _, name), column in parts if first == prefix}
        return group

    def require_finite(self) -> None:
        """Raise `NotFinite` if a number in the rollout is NaN or Inf."""
        for name, column in self.columns.items():
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                place = np.argwhere(~np.isfinite(column))[0].tolist()
                row, lane = (0, place[0]) if name.startswith("carry.") else place[:2]
                episode, step = self._episode_and_step(row, lane)
                raise NotFinite(
                    f"{name} of environment {lane} became {column[tuple(place)]} at step {step} of its episode "
                    f"{episode}, both counted from 0. Repair the environment, or lower the learning rate if it is the "
                    f"policy that sends it there; what was saved before is intact."
                )

    def _episode_and_step(self, row: int, lane: int) -> tuple[int, int]:
        """The episode that a row of a lane belongs to, and the step within it."""
        columns = self.columns
        ends = np.flatnonzero(columns["ending"][:row, lane])
        begin, before = (int(ends[-1]) + 1, 0) if len(ends) else (0, int(columns["start"][lane]))
        return int(columns["episode"][lane]) + len(ends), before + int(columns["acted"][begin:row, lane].sum())

    def segments(self, client: str) -> Iterator[Segment]:
        """Cut at the end of each episode and at the end of the rollout; the arrays of each segment are its own."""
        self.require_finite()
        columns = self.columns
        observation, final = self.group("observation"), self.group("final")
        extras, carry = self.group("extras"), self.group("carry")
        steps, lanes = columns["reward"].shape
        version = int(columns["version"][0])
        ending_column, acted = columns["ending"], columns["acted"]
        elapsed = columns.get("elapsed")
        all_acted = bool(acted.all())
        for lane in range(lanes):
            stream = StreamKey(client, "agent", lane)
            episode, start = int(columns["episode"][lane]), int(columns["start"][lane])
            first = 0
            ends = np.flatnonzero(ending_column[:, lane]).tolist()
            if not ends or ends[-1] != steps - 1:
                ends.append(steps - 1)
            for last in ends:
                if not all_acted:
                    # A backend that resets within a step call spends the first call of an episode on it.
                    while first <= last and not acted[first, lane]:
                        first += 1
                    if first > last:
                        continue
                ending = Ending(int(ending_column[last, lane]))
                seen = {name: column[first : last + 2, lane].copy() for name, column in observation.items()}
                if ending is not Ending.CONTINUES:
                    for name, column in final.items():
                        seen[name][-1] = column[last, lane]
                yield Segment(
                    stream=stream,
                    episode=episode,
                    start=start,
                    policy_version=version,
                    ending=ending,
                    observation=seen,
                    action=columns["action"][first : last + 1, lane].copy(),
                    reward=columns["reward"][first : last + 1, lane].copy(),
                    extras={name: column[first : last + 1, lane].copy() for name, column in extras.items()},
                    carry={
                        name: memory[lane].copy() if first == 0 else np.zeros_like(memory[lane])
                        for name, memory in carry.items()
                    },
                    elapsed=None if elapsed is None else elapsed[first : last + 1, lane].copy(),
                )
                first = last + 1
                if ending is not Ending.CONTINUES:
                    episode, start = episode + 1, 0


class NotFinite(ValueError):
    """An environment returned a number that is not finite."""


def _aligned(size: int) -> int:
    return -(-size // 64) * 64
