"""An episode of a live system: act, reward, end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.forks import fork_error, forks
from rl4sys.client.lane import Lane
from rl4sys.client.segment_buffer import RecordedStep, SegmentBuffer
from rl4sys.client.snapshot import NewestSnapshot, Snapshot, ThreadPolicies
from rl4sys.experience import Array, Ending, Segment
from rl4sys.wire import SegmentFormat

Fallback = Callable[[Any], Any]
"""Chooses an action for an observation, as the system passed it, while there is no policy yet."""


_LARGEST_REWARD = float(np.finfo(np.float32).max)


class EpisodeEnded(ValueError):
    """`act` was called on an episode that has ended."""


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all episodes of one agent share."""

    newest: NewestSnapshot
    policies: ThreadPolicies
    status: AgentStatus
    post: Callable[[Segment, Snapshot], None]
    release: Callable[[Lane], None]
    longest: int
    """Most steps of one segment."""
    reward_window: int
    fallback: Fallback | None
    forks: int


class Episode:
    """Acts and records. Rewards may come from another thread than decisions.

    Nothing here waits for the network: a decision reads the newest snapshot once, by reference. A segment is cut when
    it is full, when new weights arrive and when the episode ends. It is sealed and sent once all its decisions have
    left the `reward_window`.
    """

    def __init__(self, shared: SharedState, lane: Lane) -> None:
        self._shared = shared
        self._lane = lane
        self._lock = threading.Lock()
        self._buffer: SegmentBuffer | None = None
        self._held: list[SegmentBuffer] = []
        self._form: SegmentFormat | None = None
        self._carry: dict[str, Array] = {}
        self._decisions = 0
        self._unrecorded = 0
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(ending=Ending.TRUNCATED)

    @property
    def decision(self) -> int:
        """The id of the latest decision, for late rewards; -1 before the first."""
        return self._decisions - 1

    @property
    def lane(self) -> Lane:
        """Where its segments are recorded."""
        return self._lane

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended

    def act(self, observation: Any, mask: Any = None) -> Any:
        """Choose the action for an observation: an int for one choice, else an array."""
        shared = self._shared
        if shared.forks != forks():
            raise fork_error()
        with self._lock:
            buffer, snapshot = self._buffer, shared.newest.snapshot
            if buffer is not None and buffer.snapshot is snapshot and buffer.count < buffer.length and not self._held:
                # The common case: no segment is complete, so there is nothing to seal.
                self._lane.reader.write(buffer.observation, buffer.count, observation, mask)
                return self._decide(buffer)
        return self._act_in_next_segment(observation, mask)

    def _act_in_next_segment(self, observation: Any, mask: Any) -> Any:
        shared = self._shared
        sealed: list[tuple[Segment, Snapshot]] = []
        try:
            with self._lock:
                if self._ended:
                    raise EpisodeEnded("This episode has ended; start another one with agent.episode().")
                snapshot = shared.newest.snapshot
                if snapshot is None:
                    return self._fall_back(observation)
                return self._decide(self._observe(snapshot, observation, mask, sealed))
        finally:
            # Complete segments are posted even if this observation is refused. Outside the lock: with
            # `overflow: block` posting may wait, and rewards must not.
            for segment, origin in sealed:
                shared.post(segment, origin)

    def _decide(self, buffer: SegmentBuffer) -> Any:
        """Choose an action for the present row of the buffer and record it there."""
        lane, carry = self._lane, self._carry
        decision = self._shared.policies.at(buffer.snapshot).act_on_row(
            buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None
        )
        buffer.record(decision)
        lane.decisions += 1
        self._decisions += 1
        if carry:
            for name, array in decision.carry.items():
                np.copyto(carry[name], array)
        return lane.finish_action(decision.action)

    def reward(self, value: float, decision: int | None = None) -> None:
        """Add to the reward of the latest decision, or of that with this id. Rewards that are too late are counted."""
        number = float(value)
        if not abs(number) <= _LARGEST_REWARD:
            raise ValueError(f"Got the reward {number}; expected a finite number. Leave it out if it is not known.")
        with self._lock:
            index = self._decisions - 1 if decision is None else decision
            if not 0 <= index < self._decisions:
                raise ValueError(f"There is no decision {index}; this episode has taken {self._decisions} of them.")
            if index < self._unrecorded:
                return
            buffer = self._buffer
            if buffer is not None and buffer.start <= index < buffer.end:
                buffer.reward[index - buffer.start] += number
                return
            for held in reversed(self._held):
                if held.start <= index < held.end:
                    held.reward[index - held.start] += number
                    return
        self._shared.status.add("late_rewards")

    def take_step(self) -> RecordedStep | None:
        """Take the latest decision out of the record, for a program that chooses later what is recorded.

        Call it after every `act` of an episode or after none. None if the decision was not recorded.
        """
        with self._lock:
            buffer = self._buffer
            if buffer is None or not buffer.count:
                return None
            step = buffer.first_step()
            buffer.begin(buffer.snapshot, self._decisions, self._carry)
            return step

    def end(self, final_observation: Any = None, ending: Ending = Ending.TERMINATED, mask: Any = None) -> None:
        """End the episode; a second call changes nothing.

        After a truncation, learning needs the final observation to bootstrap from. Without one the last decision is not
        sent, since its outcome is unknown, and counted under `no_final_observation`.
        """
        if ending is Ending.CONTINUES:
            raise ValueError("An episode ends as TERMINATED or TRUNCATED; one that continues needs no end.")
        with self._lock:
            if self._ended:
                return
            sealed = self._finish(final_observation, mask, ending)
            self._ended = True
        for segment, origin in sealed:
            self._shared.post(segment, origin)
        self._shared.release(self._lane)

    def _observe(
        self, snapshot: Snapshot, observation: Any, mask: Any, sealed: list[tuple[Segment, Snapshot]]
    ) -> SegmentBuffer:
        """The buffer with the observation in its present row; segments that can be sent now are added to `sealed`."""
        buffer = self._buffer
        if buffer is not None and self._form is not snapshot.form:
            # A policy with another schema: the next observation does not fit the old buffer.
            sealed += self._seal_all(self._without_last(buffer, "schema_changed"), Ending.TRUNCATED)
            buffer = None
        if buffer is None:
            buffer = self._begin(snapshot)
        self._lane.reader.write(buffer.observation, buffer.count, observation, mask)
        if buffer.count and (buffer.count == buffer.length or buffer.snapshot is not snapshot):
            self._held.append(buffer)
            following = self._lane.buffer(snapshot, buffer.length).begin(snapshot, buffer.end, self._carry)
            following.continue_from(buffer)
            buffer = following
        elif buffer.count == 0:
            buffer.snapshot = snapshot
        self._buffer = buffer
        while self._held and self._held[0].end <= self._decisions - self._shared.reward_window:
            sealed.append(self._seal(self._held.pop(0), Ending.CONTINUES))
        return buffer

    def _begin(self, snapshot: Snapshot) -> SegmentBuffer:
        """The first buffer of the episode, or the first after a change of schema."""
        if self._form is not snapshot.form:
            self._form = snapshot.form
            self._carry = {spec.name: np.zeros((1, *spec.shape), np.float32) for spec in snapshot.form.schema.carry}
        self._lane.prepare(snapshot)
        buffer = self._lane.buffer(snapshot, min(self._shared.longest, snapshot.max_steps))
        return buffer.begin(snapshot, self._decisions, self._carry)

    def _finish(self, final_observation: Any, mask: Any, ending: Ending) -> list[tuple[Segment, Snapshot]]:
        buffer = self._buffer
        if buffer is None:
            return []
        if final_observation is not None:
            self._lane.reader.write(buffer.observation, buffer.count, final_observation, mask)
        elif ending is Ending.TERMINATED:
            buffer.repeat_last()
        else:
            buffer = self._without_last(buffer, "no_final_observation")
        return self._seal_all(buffer, ending)

    def _seal_all(self, last: SegmentBuffer, ending: Ending) -> list[tuple[Segment, Snapshot]]:
        buffers = [buffer for buffer in (*self._held, last) if buffer.count]
        self._held, self._buffer = [], None
        final = len(buffers) - 1
        return [self._seal(d, ending if number == final else Ending.CONTINUES) for number, d in enumerate(buffers)]

    def _seal(self, buffer: SegmentBuffer, ending: Ending) -> tuple[Segment, Snapshot]:
        segment = buffer.seal(self._lane.stream, self._lane.episode, ending)
        self._lane.give_back(buffer)
        return segment, buffer.snapshot

    def _without_last(self, buffer: SegmentBuffer, reason: str) -> SegmentBuffer:
        """Drop the last decision, whose outcome was never observed."""
        if buffer.count:
            buffer.count -= 1
            self._shared.status.add(f"drops:{reason}")
        return buffer

    def _fall_back(self, observation: Any) -> Any:
        fallback = self._shared.fallback
        if fallback is None:
            raise RuntimeError("There is no policy yet. Use rl4sys.connect, which waits for one.")
        self._decisions += 1
        self._unrecorded += 1
        self._shared.status.add("fallback_decisions")
        return fallback(observation)
