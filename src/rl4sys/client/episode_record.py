"""What an episode has recorded and not sent yet: its present segment, and those that wait for rewards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.bad_input import BAD_INPUT, BadInputChoice
from rl4sys.client.decision_times import SAMPLED
from rl4sys.client.lane import Lane
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.segment_buffer import NO_CARRY, RecordedStep, SegmentBuffer
from rl4sys.client.shared_state import SharedState
from rl4sys.client.snapshot import Snapshot
from rl4sys.client.thinning import SPAN
from rl4sys.experience import Array, DecidedBy, Ending, Segment

_FEWEST_SETTLED = 16
"""Settled decisions for which the present segment is cut: shorter ones would send most observations twice."""
_GAPS = 16
"""Ranges of unrecorded decisions that an episode remembers, to tell their rewards from late ones."""

Sealed = list[tuple[Segment, Snapshot]]


class EpisodeRecord:
    """The decisions of one episode. Not thread-safe: the episode's lock protects it.

    A segment is cut when it is full, when new weights arrive, when something else decides and when the episode ends.
    It is sealed and sent once all its decisions have left the `reward_window`.
    """

    __slots__ = (
        *("_shared", "_lane", "_number", "buffer", "_held", "_interface", "carry", "decisions", "slow_at"),
        *("_gaps", "_is_thinned", "_span_end", "now"),
    )

    def __init__(self, shared: SharedState, lane: Lane) -> None:
        self._shared = shared
        self._lane = lane
        self._number = lane.episode
        self.buffer: SegmentBuffer | None = None
        """The present segment."""
        self._held: list[SegmentBuffer] | None = None
        """Segments that are complete and wait for rewards, oldest first."""
        self._interface: PolicyInterface | None = None
        self.carry: dict[str, Array] = NO_CARRY
        self.decisions = 0
        self.slow_at = 0
        """The decision that has more to do than the common case: growing, cutting, sealing or measuring."""
        self._gaps: list[tuple[int, int]] | None = None
        """The latest ranges of decisions that are not recorded."""
        self._is_thinned = False
        self._span_end = 0
        """The decision before which it is asked again whether to record."""
        self.now: float | None = None
        """When the latest decision was taken, by the system's clock; None if it gives no times."""

    def follow(self, now: float | None) -> None:
        """Note the time between the latest decision and the one that is about to be taken; before every attempt."""
        if now is None:
            raise ValueError("Got no time; earlier decisions of this episode had one. Pass now with every decision.")
        if self.now is None:
            if self.decisions:
                raise ValueError(f"Got now={now}, but earlier decisions of this episode had no time. Pass it with all.")
            self._require_time(now, -math.inf)
            return
        self._require_time(now, self.now)
        if self.buffer is not None and self.buffer.count:
            self.buffer.note_elapsed(now - self.now)

    def decided_at(self, now: float) -> None:
        """Note when the latest decision was taken."""
        self.now = now
        buffer = self.buffer
        if buffer is not None and not buffer.is_timed:
            buffer.begin_times()
        if buffer is not None and buffer.count:
            buffer.note_elapsed(0.0)

    @staticmethod
    def _require_time(now: float, earlier: float) -> None:
        if not math.isfinite(now):
            raise ValueError(f"Got now={now}; expected seconds, a finite number.")
        if now < earlier:
            raise ValueError(f"Got now={now} after {earlier}; time does not go backwards. Use a monotonic clock.")

    def observe(self, plan: ActingPlan, snapshot: Snapshot, observation: Any, mask: Any) -> SegmentBuffer:
        """The buffer with the observation in its present row; a segment that is complete moves to the held ones."""
        return self.decided_with(self.observe_undecided(plan, snapshot, observation, mask), plan, snapshot)

    def observe_undecided(self, plan: ActingPlan, snapshot: Snapshot, observation: Any, mask: Any) -> SegmentBuffer:
        """As `observe`, while it is not known what will decide: the present segment continues until `decided_with`."""
        buffer = self.buffer
        if buffer is not None and self._interface is not snapshot.interface:
            # A policy with another schema: the next observation does not fit the old buffer.
            self._close(self._without_last(buffer, "schema_changed"), Ending.TRUNCATED)
            buffer = None
        if buffer is None:
            buffer = self._begin(plan, snapshot)
        elif buffer.count == buffer.rows < buffer.length:
            buffer.grow()
        buffer.write(buffer.observation, buffer.count, observation, mask)
        self.buffer = buffer
        return buffer

    def decided_with(self, buffer: SegmentBuffer, plan: ActingPlan, snapshot: Snapshot) -> SegmentBuffer:
        """The buffer for a decision by this plan about the present observation; another version cuts the segment."""
        if buffer.count == 0:
            buffer.adopt(plan)
            buffer.recorded = self._records(plan)
        elif buffer.count == buffer.length or self._is_another(buffer, plan) or self._is_complete(buffer):
            recorded = self._records(plan)
            following = self._take(plan, snapshot, recorded=recorded)
            following.continue_from(buffer)
            self._close(buffer, Ending.CONTINUES if recorded else Ending.TRUNCATED)
            buffer = following
        elif buffer.acting is not plan:
            buffer.adopt(plan)
        self.buffer = buffer
        return buffer

    def _begin(self, plan: ActingPlan, snapshot: Snapshot) -> SegmentBuffer:
        """The first buffer of the episode, or the first after a gap or a change of schema."""
        if self._interface is not snapshot.interface:
            self._interface = snapshot.interface
            self._lane.noise.resize(snapshot.interface.noise_size)
            carry = snapshot.form.schema.carry
            self.carry = {spec.name: np.zeros((1, *spec.shape), np.float32) for spec in carry} or NO_CARRY
        return self._take(plan, snapshot, recorded=self._records(plan))

    def _take(self, plan: ActingPlan, snapshot: Snapshot, *, recorded: bool) -> SegmentBuffer:
        shared = self._shared
        buffer = shared.pool.take(snapshot, min(shared.longest, snapshot.max_steps))
        if shared.reward_window.cuts:
            buffer.began_at = shared.clock()
        return buffer.begin(plan, self.decisions, self.carry, recorded=recorded)

    def _records(self, plan: ActingPlan) -> bool:
        """Whether the next segment is recorded; asked again after each span, so that endless episodes are thinned."""
        if not plan.records:
            return False
        shared = self._shared
        if self.decisions >= self._span_end:
            self._span_end = self.decisions + SPAN
            self._is_thinned = not shared.thinning.keeps(shared.governor.record_share)
            if self._is_thinned:
                shared.status.add("thinned_episodes")
        return not self._is_thinned

    def _is_another(self, buffer: SegmentBuffer, plan: ActingPlan) -> bool:
        """Whether the next decision does not belong to the segment of this buffer."""
        return (
            buffer.snapshot is not plan.snapshot
            or buffer.decided_by is not plan.decided_by
            or buffer.recorded != (plan.records and not self._is_thinned)
        )

    def _is_complete(self, buffer: SegmentBuffer) -> bool:
        """Whether to cut here because no rewards are awaited any more, so that endless episodes send all the time."""
        if buffer.is_settled:
            return buffer.count >= _FEWEST_SETTLED
        window = self._shared.reward_window
        return window.cuts and window.seconds is not None and buffer.began_at + window.seconds <= self._shared.clock()

    def leave_out(self) -> None:
        """Take a decision that is not recorded; what was recorded before it ends here."""
        buffer = self.buffer
        if buffer is not None:
            if buffer.count:
                # What followed the last step cannot be observed; the observation before it is the best guess.
                buffer.repeat_last()
            self._close(buffer, Ending.TRUNCATED)
        self._skip(self.decisions, self.decisions + 1)
        self.decisions += 1

    def _close(self, buffer: SegmentBuffer, ending: Ending) -> None:
        """Hold a complete segment back for rewards, or forget it if it is not recorded."""
        self.buffer = None
        if buffer.recorded and buffer.count:
            buffer.ending = ending
            if self._shared.reward_window.seconds is not None:
                buffer.closed_at = self._shared.clock()
            self._held = [*(self._held or ()), buffer]
            return
        if buffer.count:
            self._skip(buffer.start, buffer.end)
        self._shared.pool.give_back(buffer)

    def _skip(self, first: int, after: int) -> None:
        """Remember decisions that are not recorded."""
        self._shared.status.add("unrecorded_decisions", after - first)
        gaps = self._gaps or []
        if gaps and gaps[-1][1] == first:
            first = gaps.pop()[0]
        self._gaps = [*gaps[1 - _GAPS :], (first, after)]

    def next_slow(self) -> int:
        """The next decision that has more to do than the common case."""
        return min(self.next_change(), self.decisions - self.decisions % SAMPLED + SAMPLED)

    def next_change(self) -> int:
        """The next decision before which the present segment grows or is cut, or another one may be due."""
        buffer = self.buffer
        window = self._shared.reward_window
        if buffer is None or window.cuts:
            # By time, a segment may be complete at any decision.
            return 0
        if not self._held:
            return buffer.start + buffer.rows
        # By time, a segment may be due at any decision.
        return min(buffer.start + buffer.rows, self._held[0].end + window.decisions) if window.seconds is None else 0

    @property
    def takable(self) -> int:
        """How many of the next decisions can be taken out with `take_step` before it is asked whether to record."""
        buffer = self.buffer
        return 0 if buffer is None or self._held or not buffer.recorded else self._span_end - self.decisions

    def begin_first(self, plan: ActingPlan, snapshot: Snapshot) -> None:
        """Begin the first segment of the episode before its first observation is read."""
        self.buffer = self._begin(plan, snapshot)

    def take_over(self, decisions: int, begin: int) -> None:
        """Count decisions that the native path has taken and written to the present segment.

        `begin`: the segment begins after so many of them, because all before were taken out; -1 if none were.
        """
        buffer = self.buffer
        if buffer is not None and begin >= 0:
            buffer.leave_behind(self.decisions + begin, decisions - begin)
        elif buffer is not None:
            buffer.count += decisions
        self.decisions += decisions
        self._lane.decisions += decisions
        if begin >= 0:
            self.slow_at = min(self.next_slow(), self._span_end)

    def finish(self, final_observation: Any, mask: Any, ending: Ending, now: float | None) -> None:
        if now is not None:
            self.follow(now)
        buffer = self.buffer
        if buffer is None:
            return
        # Without a step there is nothing that the final observation follows.
        is_known = final_observation is not None and buffer.count > 0
        if is_known:
            try:
                buffer.write(buffer.observation, buffer.count, final_observation, mask)
            except BAD_INPUT as error:
                self._shared.status.bad_input(error)
                if self._shared.on_bad_input is BadInputChoice.RAISE:
                    raise
                is_known = False
        if not is_known and ending is Ending.TERMINATED and buffer.count:
            buffer.repeat_last()
        elif not is_known:
            buffer = self._without_last(buffer, "no_final_observation")
        self._close(buffer, ending)
        if self._held and self._held[-1].ending is Ending.CONTINUES:
            self._held[-1].ending = ending

    def seal_due(self, decisions: int, sealed: Sealed) -> None:
        """Seal the segments whose decisions have all left the reward window after so many decisions."""
        while self._held and self._is_due(self._held[0], decisions):
            sealed.append(self._seal(self._held.pop(0)))

    def _is_due(self, buffer: SegmentBuffer, decisions: int) -> bool:
        window = self._shared.reward_window
        if buffer.end <= decisions - window.decisions or buffer.is_settled:
            return True
        return window.seconds is not None and buffer.closed_at + window.seconds <= self._shared.clock()

    def _seal(self, buffer: SegmentBuffer) -> tuple[Segment, Snapshot]:
        segment, snapshot = buffer.seal(self._lane.stream, self._number), buffer.snapshot
        self._shared.pool.give_back(buffer)
        return segment, snapshot

    def _without_last(self, buffer: SegmentBuffer, reason: str) -> SegmentBuffer:
        """Drop the last decision, whose outcome was never observed."""
        if buffer.count and buffer.recorded:
            buffer.count -= 1
            self._shared.status.add(f"drops:{reason}")
        return buffer

    def add_reward(self, value: float, index: int) -> bool:
        """Add to the reward of a decision; false if that is sealed already."""
        for buffer in (self.buffer, *reversed(self._held or ())):
            if buffer is not None and buffer.start <= index < buffer.end:
                buffer.reward[index - buffer.start] += value
                return True
        return any(first <= index < after for first, after in self._gaps or ())

    def settle(self, index: int, sealed: Sealed) -> None:
        """Note that a decision gets no more rewards, and seal the segments that wait for none now."""
        for buffer in (self.buffer, *(self._held or ())):
            if buffer is not None and buffer.start <= index < buffer.end:
                buffer.settle(index)
        self.seal_due(self.decisions - 1, sealed)
        # The next decision may have to cut the present segment.
        self.slow_at = 0

    def last_action(self) -> Any:
        """The action of the last decision that is not sealed yet; None if there is none."""
        for buffer in (self.buffer, *reversed(self._held or ())):
            if buffer is not None and buffer.count:
                return buffer.last_action()
        return None

    def take_step(self) -> RecordedStep | None:
        """Take the latest decision out of the record; None if it was not recorded."""
        buffer = self.buffer
        if buffer is None or not buffer.count or not buffer.recorded or buffer.decided_by is not DecidedBy.POLICY:
            return None
        step = buffer.first_step()
        buffer.begin_again(self.decisions, self.carry)
        # An empty segment is neither full nor cut, so that it is asked here whether to record the next span.
        self.slow_at = min(self.next_slow(), self._span_end)
        return step

    def take_all(self) -> Sealed:
        """Seal all segments that wait for rewards."""
        sealed: Sealed = []
        while self._held:
            sealed.append(self._seal(self._held.pop(0)))
        return sealed
