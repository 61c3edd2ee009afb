"""An episode of a live system: act, reward, end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Self

import numpy as np

from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.decision_times import SAMPLED, DecisionTimes
from rl4sys.client.fallback import FallbackDecider, PolicyOff
from rl4sys.client.forks import fork_error, forks
from rl4sys.client.governor import Governor
from rl4sys.client.lane import Lane
from rl4sys.client.observation_reader import BadObservation
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.reward_window import RewardWindow
from rl4sys.client.segment_buffer import RecordedStep, SegmentBuffer, SegmentBufferPool
from rl4sys.client.snapshot import Snapshot, ThreadPolicies
from rl4sys.client.thinning import SPAN, Thinning
from rl4sys.experience import Array, DecidedBy, Ending, Segment
from rl4sys.policy import NoAllowedAction

_LARGEST_REWARD = float(np.finfo(np.float32).max)
_GAPS = 16
"""Ranges of unrecorded decisions that an episode remembers, to tell their rewards from late ones."""
_BAD_INPUT = (BadObservation, NoAllowedAction)
_OFF = {
    "control": "an operator ordered it off",
    "kill_file": "the kill file exists",
    "lease": "the server was silent for longer than the lease",
    "no_policy": "none has arrived yet",
}

Sealed = list[tuple[Segment, Snapshot]]


class EpisodeEnded(ValueError):
    """`act` was called on an episode that has ended."""


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all episodes of one agent share."""

    governor: Governor
    policies: ThreadPolicies
    status: AgentStatus
    pool: SegmentBufferPool
    thinning: Thinning
    times: DecisionTimes
    post: Callable[[Segment, Snapshot], None]
    release: Callable[[Lane], None]
    longest: int
    """Most steps of one segment."""
    reward_window: RewardWindow
    clock: Callable[[], float]
    """In seconds, for rewards that are accepted by time."""
    fallback: FallbackDecider | None
    on_bad_input: BadInputChoice
    forks: int


class Episode:
    """Acts and records. Rewards may come from another thread than decisions.

    Nothing here waits for the network: a decision reads the present plan once, by reference. A segment is cut when
    it is full, when new weights arrive, when something else decides and when the episode ends. It is sealed and sent
    once all its decisions have left the `reward_window`.
    """

    __slots__ = (
        *("_shared", "_lane", "_number", "_lock", "_buffer", "_held", "_interface", "_carry", "_decisions", "_slow_at"),
        *("_gaps", "_is_thinned", "_span_end", "_last_action", "_ended"),
    )

    def __init__(self, shared: SharedState, lane: Lane) -> None:
        self._shared = shared
        self._lane = lane
        self._number = lane.episode
        self._lock = threading.Lock()
        self._buffer: SegmentBuffer | None = None
        self._held: list[SegmentBuffer] | None = None
        """Segments that are complete and wait for rewards, oldest first."""
        self._interface: PolicyInterface | None = None
        self._carry: dict[str, Array] = _NO_CARRY
        self._decisions = 0
        self._slow_at = 0
        """The decision that has more to do than the common case: growing, cutting, sealing or measuring."""
        self._gaps: list[tuple[int, int]] | None = None
        """The latest ranges of decisions that are not recorded."""
        self._is_thinned = False
        self._span_end = 0
        """The decision before which it is asked again whether to record."""
        self._last_action: Any = None
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
        problem: Exception | None = None
        with self._lock:
            buffer = self._buffer
            if buffer is not None and buffer.acting is shared.governor.plan and self._decisions < self._slow_at:
                # The common case: the policy decides, and nothing is to be cut, sealed or measured.
                try:
                    buffer.write(buffer.observation, buffer.count, observation, mask)
                    return self._decide(buffer)
                except _BAD_INPUT as error:
                    problem = error
        return self._act_slowly(observation, mask, problem)

    def _act_slowly(self, observation: Any, mask: Any, problem: Exception | None) -> Any:
        shared = self._shared
        sealed: Sealed = []
        is_timed = self._decisions % SAMPLED == 0
        began = perf_counter_ns() if is_timed else 0
        try:
            with self._lock:
                if self._ended:
                    raise EpisodeEnded("This episode has ended; start another one with agent.episode().")
                before = self._decisions
                try:
                    action = self._act_by(shared.governor.plan, observation, mask, problem)
                finally:
                    self._seal_due(before, sealed)
                    self._slow_at = self._next_slow()
            if is_timed:
                shared.times.add(perf_counter_ns() - began)
            return action
        finally:
            # Complete segments are posted even if this observation is refused. Outside the lock: with
            # `overflow: block` posting may wait, and rewards must not.
            for segment, origin in sealed:
                shared.post(segment, origin)

    def _act_by(self, plan: ActingPlan, observation: Any, mask: Any, problem: Exception | None) -> Any:
        if plan.decided_by is DecidedBy.FALLBACK or plan.snapshot is None:
            return self._act_by_fallback(plan, observation, mask)
        if problem is None:
            try:
                return self._decide(self._observe(plan, plan.snapshot, observation, mask))
            except _BAD_INPUT as error:
                problem = error
        return self._act_despite(problem, plan.snapshot, observation)

    def _decide(self, buffer: SegmentBuffer) -> Any:
        """Let the policy choose an action for the present row of the buffer, and record it there."""
        lane, carry = self._lane, self._carry
        policy = self._shared.policies.at(buffer.snapshot)
        decision = policy.act_on_row(buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None)
        if not policy.is_finite(decision):
            raise BadObservation(
                "The policy's decision for this observation is NaN or infinite: its values are too large. Scale or "
                "clip them."
            )
        buffer.record(decision)
        lane.decisions += 1
        self._decisions += 1
        if carry:
            for name, array in decision.carry.items():
                np.copyto(carry[name], array)
        return buffer.finish(decision.action)

    def _act_by_fallback(self, plan: ActingPlan, observation: Any, mask: Any) -> Any:
        """Let the fallback decide because the policy may not; recorded if the learner has use for it."""
        shared, snapshot = self._shared, plan.snapshot
        if shared.fallback is None:
            raise PolicyOff(
                f"The policy does not decide, because {_OFF[plan.off]}, and there is no fallback. Pass "
                f"`fallback=` to connect."
            )
        actions = None if snapshot is None else snapshot.interface.actions
        action, row = shared.fallback.decide(observation, actions)
        shared.status.add("fallback_decisions")
        if snapshot is not None and row is not None and (plan.records or plan.observes):
            try:
                buffer = self._observe(plan, snapshot, observation, mask)
                if plan.observes:
                    self._compare(buffer, row)
                buffer.record_fallback(row)
                self._decisions += 1
                return action
            except _BAD_INPUT as error:
                self._shared.status.bad_input(error)
        self._leave_out()
        return action

    def _compare(self, buffer: SegmentBuffer, row: Array) -> None:
        """Let the policy decide beside the fallback, and count how often they agree."""
        lane, carry, status = self._lane, self._carry, self._shared.status
        policy = self._shared.policies.at(buffer.snapshot)
        decision = policy.act_on_row(buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None)
        lane.decisions += 1
        for name, array in decision.carry.items():
            np.copyto(carry[name], array)
        status.add("observed_decisions")
        if buffer.snapshot.interface.actions.agree(decision.action[0], row):
            status.add("agreed_decisions")

    def _act_despite(self, problem: Exception, snapshot: Snapshot, observation: Any) -> Any:
        """Decide although the observation or the decision of the policy cannot be used."""
        shared = self._shared
        shared.status.bad_input(problem)
        choice, action = shared.on_bad_input, None
        if choice is BadInputChoice.HOLD:
            action = self._previous_action()
        if action is None and choice is not BadInputChoice.RAISE and shared.fallback is not None:
            action, _ = shared.fallback.decide(observation, snapshot.interface.actions)
            shared.status.add("fallback_decisions")
        if action is None:
            raise problem
        self._last_action = action
        self._leave_out()
        return action

    def _previous_action(self) -> Any:
        """The action of the last decision; None before the first."""
        for buffer in (self._buffer, *reversed(self._held or ())):
            if buffer is not None and buffer.count:
                return buffer.last_action()
        return self._last_action

    def reward(self, value: float, decision: int | None = None) -> None:
        """Add to the reward of the latest decision, or of that with this id. Rewards that are too late are counted."""
        number = float(value)
        if not abs(number) <= _LARGEST_REWARD:
            raise ValueError(f"Got the reward {number}; expected a finite number. Leave it out if it is not known.")
        with self._lock:
            index = self._decisions - 1 if decision is None else decision
            if not 0 <= index < self._decisions:
                raise ValueError(f"There is no decision {index}; this episode has taken {self._decisions} of them.")
            buffer = self._buffer
            if buffer is not None and buffer.start <= index < buffer.end:
                buffer.reward[index - buffer.start] += number
                return
            for held in reversed(self._held or ()):
                if held.start <= index < held.end:
                    held.reward[index - held.start] += number
                    return
            if any(first <= index < after for first, after in self._gaps or ()):
                return
        self._shared.status.add("late_rewards")

    def take_step(self) -> RecordedStep | None:
        """Take the latest decision out of the record, for a program that chooses later what is recorded.

        Call it after every `act` of an episode or after none. None if the decision was not recorded.
        """
        with self._lock:
            buffer = self._buffer
            if buffer is None or not buffer.count or not buffer.recorded or buffer.decided_by is DecidedBy.FALLBACK:
                return None
            step = buffer.first_step()
            buffer.begin_again(self._decisions, self._carry)
            self._slow_at = self._next_slow()
            return step

    def end(self, final_observation: Any = None, ending: Ending = Ending.TERMINATED, mask: Any = None) -> None:
        """End the episode; a second call changes nothing.

        After a truncation, learning needs the final observation to bootstrap from. Without one the last decision is not
        sent, since its outcome is unknown, and counted under `no_final_observation`.
        """
        if ending is Ending.CONTINUES:
            raise ValueError("An episode ends as TERMINATED or TRUNCATED; one that continues needs no end.")
        sealed: Sealed = []
        with self._lock:
            if self._ended:
                return
            self._finish(final_observation, mask, ending)
            self._ended = True
            while self._held:
                sealed.append(self._seal(self._held.pop(0)))
        for segment, origin in sealed:
            self._shared.post(segment, origin)
        self._shared.release(self._lane)

    def _observe(self, plan: ActingPlan, snapshot: Snapshot, observation: Any, mask: Any) -> SegmentBuffer:
        """The buffer with the observation in its present row; a segment that is complete moves to the held ones."""
        buffer = self._buffer
        if buffer is not None and self._interface is not snapshot.interface:
            # A policy with another schema: the next observation does not fit the old buffer.
            self._close(self._without_last(buffer, "schema_changed"), Ending.TRUNCATED)
            buffer = None
        if buffer is None:
            buffer = self._begin(plan, snapshot)
        elif buffer.count == buffer.rows < buffer.length:
            buffer.grow()
        buffer.write(buffer.observation, buffer.count, observation, mask)
        if buffer.count == 0:
            buffer.adopt(plan)
        elif buffer.count == buffer.length or self._is_another(buffer, plan):
            recorded = self._records(plan)
            following = self._take(plan, snapshot, recorded=recorded)
            following.continue_from(buffer)
            self._close(buffer, Ending.CONTINUES if recorded else Ending.TRUNCATED)
            buffer = following
        elif buffer.acting is not plan:
            buffer.adopt(plan)
        self._buffer = buffer
        return buffer

    def _begin(self, plan: ActingPlan, snapshot: Snapshot) -> SegmentBuffer:
        """The first buffer of the episode, or the first after a gap or a change of schema."""
        if self._interface is not snapshot.interface:
            self._interface = snapshot.interface
            self._lane.noise.resize(snapshot.interface.noise_size)
            carry = snapshot.form.schema.carry
            self._carry = {spec.name: np.zeros((1, *spec.shape), np.float32) for spec in carry} or _NO_CARRY
        return self._take(plan, snapshot, recorded=self._records(plan))

    def _take(self, plan: ActingPlan, snapshot: Snapshot, *, recorded: bool) -> SegmentBuffer:
        shared = self._shared
        buffer = shared.pool.take(snapshot, min(shared.longest, snapshot.max_steps))
        return buffer.begin(plan, self._decisions, self._carry, recorded=recorded)

    def _records(self, plan: ActingPlan) -> bool:
        """Whether the next segment is recorded; asked again after each span, so that endless episodes are thinned."""
        if not plan.records:
            return False
        shared = self._shared
        if self._decisions >= self._span_end:
            self._span_end = self._decisions + SPAN
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

    def _leave_out(self) -> None:
        """Take a decision that is not recorded; what was recorded before it ends here."""
        buffer = self._buffer
        if buffer is not None:
            if buffer.count:
                # What followed the last step cannot be observed; the observation before it is the best guess.
                buffer.repeat_last()
            self._close(buffer, Ending.TRUNCATED)
        self._skip(self._decisions, self._decisions + 1)
        self._decisions += 1

    def _close(self, buffer: SegmentBuffer, ending: Ending) -> None:
        """Hold a complete segment back for rewards, or forget it if it is not recorded."""
        self._buffer = None
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

    def _next_slow(self) -> int:
        """The next decision that has more to do than the common case."""
        buffer = self._buffer
        if buffer is None:
            return 0
        slow_at = min(buffer.start + buffer.rows, self._decisions - self._decisions % SAMPLED + SAMPLED)
        if not self._held:
            return slow_at
        window = self._shared.reward_window
        # By time, a segment may be due at any decision.
        return min(slow_at, self._held[0].end + window.decisions) if window.seconds is None else 0

    def _finish(self, final_observation: Any, mask: Any, ending: Ending) -> None:
        buffer = self._buffer
        if buffer is None:
            return
        is_known = final_observation is not None
        if is_known:
            try:
                buffer.write(buffer.observation, buffer.count, final_observation, mask)
            except _BAD_INPUT as error:
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

    def _seal_due(self, decisions: int, sealed: Sealed) -> None:
        """Seal the segments whose decisions have all left the reward window after so many decisions."""
        while self._held and self._is_due(self._held[0], decisions):
            sealed.append(self._seal(self._held.pop(0)))

    def _is_due(self, buffer: SegmentBuffer, decisions: int) -> bool:
        window = self._shared.reward_window
        if buffer.end <= decisions - window.decisions:
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


_NO_CARRY: dict[str, Array] = {}
