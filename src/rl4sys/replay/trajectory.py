"""The buffer of on-policy algorithms: experience in order, used once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rl4sys.experience import Array, DecidedBy, Ending, Segment, SegmentPack, Sequences, StreamKey
from rl4sys.replay.pace import OnceFresh
from rl4sys.replay.trajectory_batch import HeldPack, HeldSegment, assemble
from rl4sys.state import State, require


class TrajectoryBuffer:
    """Collects the segments of each stream in order and yields them as one batch when there are enough steps."""

    def __init__(self, pace: OnceFresh) -> None:
        self._pace = pace
        self._held: list[HeldSegment | HeldPack] = []
        self._steps = 0
        self._ended = 0
        """Episodes that ended in what is held."""
        self._added = 0
        self._too_old = 0

    def add(self, segment: Segment, age: int = 0) -> None:
        """Keep a segment for the next batch, unless its policy is too many versions old."""
        if age > self._pace.max_age:
            self._too_old += segment.steps
            return
        self._held.append(HeldSegment(segment, age))
        self._steps += segment.steps
        self._ended += segment.ending is not Ending.CONTINUES
        self._added += segment.steps

    def absorb(self, pack: SegmentPack, age: int = 0) -> int:
        """Keep the first segments of a pack, as many as make no batch due; returns how many."""
        if age > self._pace.max_age:
            self._too_old += len(pack.reward)
            return len(pack)
        ended = pack.ending != Ending.CONTINUES
        count = int(np.searchsorted(self._steps + pack.ends, self._pace.steps))
        if self._pace.episodes is not None:
            count = min(count, int(np.searchsorted(self._ended + np.cumsum(ended), self._pace.episodes)))
        if count and not self._is_due():
            taken = pack.part(0, count)
            self._held.append(HeldPack(taken, age))
            self._steps += len(taken.reward)
            self._ended += int(ended[:count].sum())
            self._added += len(taken.reward)
            return count
        return 0

    def due(self) -> Iterator[Sequences]:
        """One batch with everything held, if that is enough; the buffer is empty afterwards."""
        if self._is_due():
            held, self._held, self._steps, self._ended = self._held, [], 0, 0
            yield assemble(held)

    def _is_due(self) -> bool:
        if self._steps >= self._pace.steps:
            return True
        return self._pace.episodes is not None and self._ended >= self._pace.episodes

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
        self._steps = sum(held.steps for held in self._held)
        self._ended = sum(held.ended for held in self._held)


def _to_state(held: HeldSegment | HeldPack) -> State:
    if isinstance(held, HeldPack):
        return _pack_to_state(held)
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


def _pack_to_state(held: HeldPack) -> State:
    pack = held.pack
    times = {} if pack.elapsed is None else {"elapsed": pack.elapsed}
    return {
        "age": held.age,
        "pack": [pack.client, pack.agent, pack.policy_version, int(pack.decided_by)],
        "lane": pack.lane,
        "episode": pack.episode,
        "start": pack.start,
        "ending": pack.ending,
        "steps": pack.steps,
        "observation": dict(pack.observation),
        "action": pack.action,
        "reward": pack.reward,
        "extras": dict(pack.extras),
        "carry": dict(pack.carry),
    } | times


def _optional(segment: Segment) -> dict[str, Any]:
    """What only some segments have: those that no policy decided, and those that are discounted by time."""
    decided_by = {"decided_by": int(segment.decided_by)} if segment.decided_by else {}
    return decided_by | ({} if segment.time_discount is None else {"time_discount": segment.time_discount})


def _from_state(saved: Mapping[str, Any]) -> HeldSegment | HeldPack:
    fields = dict(saved)
    age = int(fields.pop("age"))
    if (pack := fields.pop("pack", None)) is not None:
        client, agent, version, decided_by = pack
        return HeldPack(SegmentPack(client, agent, version, DecidedBy(decided_by), **fields), age)
    fields["stream"] = StreamKey(*fields["stream"])
    fields["ending"] = Ending(fields["ending"])
    # Only states of segments that no policy decided have it.
    fields["decided_by"] = DecidedBy(fields.get("decided_by", DecidedBy.POLICY))
    return HeldSegment(Segment(**fields), age)
