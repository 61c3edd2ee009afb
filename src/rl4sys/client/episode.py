"""An episode of a live system: act, reward, end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Self, cast

import numpy as np

from rl4sys.client.acting_plan import OFF_REASONS, ActingPlan
from rl4sys.client.bad_input import BAD_INPUT, BadInputChoice
from rl4sys.client.decision_times import SAMPLED
from rl4sys.client.episode_record import EpisodeRecord, Sealed
from rl4sys.client.fallback import PolicyOff
from rl4sys.client.forks import fork_error, forks
from rl4sys.client.lane import Lane
from rl4sys.client.native_acting import NativeActing
from rl4sys.client.observation_reader import not_finite
from rl4sys.client.record_lock import RecordLock
from rl4sys.client.segment_buffer import NO_CARRY, RecordedStep, SegmentBuffer
from rl4sys.client.server_policy import AskedRow, NoAnswer, ServerDecision
from rl4sys.client.shared_state import SharedState
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, DecidedBy, Ending

_LARGEST_REWARD = float(np.finfo(np.float32).max)


class EpisodeEnded(ValueError):
    """`act` was called on an episode that has ended."""


class Episode:
    """Acts and records. Rewards may come from another thread than decisions.

    Nothing here waits for the network, except with `decide: server`: a decision reads the present plan once, by
    reference.
    """

    __slots__ = ("_last_action", "ended", "lane", "lock", "path", "record", "shared")

    def __init__(self, shared: SharedState, lane: Lane) -> None:
        self.shared = shared
        self.lane = lane
        """Where its segments are recorded."""
        self.record = EpisodeRecord(shared, lane)
        self.lock = threading.Lock() if shared.native is None else RecordLock(self.record)
        """Held for every change of the record."""
        self.path: Any = None
        """Decides in the common case, if the native runtime does; None until it is opened."""
        self._last_action: Any = None
        """The last action that was not recorded."""
        self.ended = False
        """Whether `end` was called."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(ending=Ending.TRUNCATED)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(ending=Ending.TRUNCATED)

    @property
    def decision(self) -> int:
        """The id of the latest decision, for late rewards; -1 before the first."""
        path = self.path
        return self.record.decisions - 1 if path is None else self.record.decisions - 1 + int(path.taken)

    def act(self, observation: Any, mask: Any = None, now: float | None = None) -> Any:
        """Choose the action for an observation: an int for one choice, else an array.

        `now`: seconds of a clock that never goes back, for every decision of an episode or for none; a learner with a
        `horizon` discounts by the time between decisions.
        """
        if (path := self.path) is not None:
            action = path.act(observation, mask, now)
            if action is not NotImplemented:
                return action
        shared = self.shared
        if shared.forks != forks():
            raise fork_error()
        problem: Exception | None = None
        record = self.record
        if shared.native is not None and record.buffer is None and now is None and not record.decisions:
            action = self._act_first(shared.native, observation, mask)
            if action is not NotImplemented:
                return action
        with self.lock:
            buffer = record.buffer
            if buffer is not None and buffer.acting is shared.governor.plan and record.decisions < record.slow_at:
                # The common case: the policy decides, and nothing is to be cut, sealed or measured.
                try:
                    if now is not None or record.now is not None:
                        record.follow(now)
                    buffer.write(buffer.observation, buffer.count, observation, mask)
                    action = self._decide(buffer)
                    if now is not None:
                        record.decided_at(now)
                    if shared.native is not None:
                        self._open_path(shared.native)
                    return action
                except BAD_INPUT as error:
                    problem = error
        return self.act_slowly(observation, mask, problem, now)

    def _act_first(self, native: NativeActing, observation: Any, mask: Any) -> Any:
        """Let a native path take the first decision of the episode; NotImplemented if it does not."""
        lock = cast(RecordLock, self.lock)
        with lock.plain:
            if self.ended or self.path is not None or self.record.buffer is not None:
                return NotImplemented
            path = native.begin(self.record, self.lane, lock)
            if path is None:
                return NotImplemented
            self.path = self.lane.path = lock.path = path
        return path.act(observation, mask, None)

    def act_slowly(self, observation: Any, mask: Any, problem: Exception | None, now: float | None = None) -> Any:
        """Act where there is more to do than in the common case, or despite a problem with the observation."""
        is_timed = self.record.decisions % SAMPLED == 0
        began = perf_counter_ns() if is_timed else 0
        action = self._decided(lambda: self._act_by(self.shared.governor.plan, observation, mask, problem), now)
        if is_timed:
            self.shared.times.add(perf_counter_ns() - began)
        return action

    def took(self, observation: Any, action: Any, mask: Any = None, now: float | None = None) -> None:
        """Record a decision that the system took by itself, without asking the policy: the learner may imitate it.

        `now` is that of `act`. Before the first policy has arrived it is not recorded: the arrays of a decision are
        not known yet.
        """
        if self.shared.forks != forks():
            raise fork_error()
        self._decided(lambda: self._take_over(self.shared.governor.of_incumbent(), observation, action, mask), now)
        self.shared.status.add("incumbent_decisions")

    def _decided(self, decide: Callable[[], Any], now: float | None) -> Any:
        """Decide under the lock, and post the segments that are complete then."""
        shared, record = self.shared, self.record
        sealed: Sealed = []
        try:
            with self.lock:
                if self.ended:
                    raise EpisodeEnded("This episode has ended; start another one with agent.episode().")
                before = record.decisions
                try:
                    if now is not None or record.now is not None:
                        record.follow(now)
                    action = decide()
                    if now is not None:
                        record.decided_at(now)
                    return action
                finally:
                    record.seal_due(before, sealed)
                    record.slow_at = record.next_slow()
                    if shared.native is not None:
                        self._open_path(shared.native)
        finally:
            # Complete segments are posted even if this observation is refused. Outside the lock: with
            # `overflow: block` posting may wait, and rewards must not.
            for segment, origin in sealed:
                shared.post(segment, origin)

    def _open_path(self, native: NativeActing) -> None:
        """Let the native path take the next decisions, if they are common ones."""
        path = native.open(self.path, self.record, self.lane, self.lock)
        if path is not self.path:
            self.path = self.lane.path = path
            cast(RecordLock, self.lock).path = path

    def _act_by(self, plan: ActingPlan, observation: Any, mask: Any, problem: Exception | None) -> Any:
        if plan.decided_by is DecidedBy.FALLBACK or plan.snapshot is None:
            return self._act_by_fallback(plan, observation, mask)
        if problem is None:
            try:
                if plan.asks:
                    return self._decide_on_server(plan, plan.snapshot, observation, mask)
                return self._decide(self.record.observe(plan, plan.snapshot, observation, mask))
            except (*BAD_INPUT, NoAnswer) as error:
                problem = error
        if isinstance(problem, NoAnswer):
            self.shared.status.add("unanswered_decisions")
            return self._act_by_fallback(self.shared.governor.without_answer(plan), observation, mask)
        return self._act_despite(problem, plan.snapshot, observation, mask)

    def _decide(self, buffer: SegmentBuffer) -> Any:
        """Let the policy choose an action for the present row of the buffer, and record it there."""
        lane, record = self.lane, self.record
        carry = record.carry
        policy = self.shared.policies.at(buffer.snapshot)
        decision = policy.act_on_row(buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None)
        if not policy.is_finite(decision):
            raise not_finite()
        buffer.record(decision.action, decision.extras)
        lane.decisions += 1
        record.decisions += 1
        if carry:
            for name, array in decision.carry.items():
                np.copyto(carry[name], array)
        return buffer.finish(decision.action)

    def _decide_on_server(self, plan: ActingPlan, snapshot: Snapshot, observation: Any, mask: Any) -> Any:
        """Ask the server, and record its decision under the version that took it."""
        buffer = self.record.observe_undecided(plan, snapshot, observation, mask)
        answer = self.shared.server_policy.decide([AskedRow(self.lane, buffer, self.record.carry)])
        return self.take_answer(plan, buffer, answer, 0)

    def take_answer(self, plan: ActingPlan, buffer: SegmentBuffer, answer: ServerDecision, row: int) -> Any:
        """Record row `row` of what the server decided about the present row of a buffer; returns the action."""
        record, decision = self.record, answer.decision
        snapshot = answer.snapshot
        buffer = record.decided_with(buffer, plan._replace(snapshot=snapshot), snapshot)
        buffer.record(decision.action, decision.extras, row)
        self.lane.decisions += 1
        record.decisions += 1
        for name, memory in record.carry.items():
            memory[0] = decision.carry[name][row]
        return buffer.finish(decision.action[row : row + 1])

    def _act_by_fallback(self, plan: ActingPlan, observation: Any, mask: Any) -> Any:
        """Let the fallback decide because the policy may not; recorded if the learner has use for it."""
        shared, snapshot = self.shared, plan.snapshot
        if shared.fallback is None:
            raise PolicyOff(
                f"The policy does not decide, because {OFF_REASONS[plan.off]}, and there is no fallback. Pass "
                f"`fallback=` to connect."
            )
        interface = None if snapshot is None else snapshot.interface
        action, row = shared.fallback.decide(observation, mask, interface)
        shared.status.add("fallback_decisions")
        if snapshot is not None and row is not None and (plan.records or plan.observes):
            try:
                buffer = self.record.observe(plan, snapshot, observation, mask)
                if plan.observes:
                    self._compare(buffer, row)
                buffer.record_given(row)
                self.record.decisions += 1
                return action
            except BAD_INPUT as error:
                self.shared.status.bad_input(error)
        self.record.leave_out()
        return action

    def _take_over(self, plan: ActingPlan, observation: Any, action: Any, mask: Any) -> None:
        """Record what the system did."""
        snapshot = plan.snapshot
        if snapshot is None:
            self.record.leave_out()
            return
        row = snapshot.interface.actions.read(action)
        try:
            buffer = self.record.observe(plan, snapshot, observation, mask)
        except BAD_INPUT as error:
            self.shared.status.bad_input(error)
            if self.shared.on_bad_input is BadInputChoice.RAISE:
                raise
            self.record.leave_out()
            return
        snapshot.interface.require_allowed(buffer.observation, buffer.count, row)
        buffer.record_given(row)
        self.record.decisions += 1

    def _compare(self, buffer: SegmentBuffer, row: Array) -> None:
        """Let the policy decide beside the fallback, and count how often they agree."""
        shared, lane, carry, status = self.shared, self.lane, self.record.carry, self.shared.status
        if buffer.snapshot.interface.is_local:
            policy = shared.policies.at(buffer.snapshot)
            decision = policy.act_on_row(buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None)
        else:
            try:
                decision = shared.server_policy.decide([AskedRow(lane, buffer, carry)]).decision
            except NoAnswer:
                status.add("unanswered_decisions")
                return
        lane.decisions += 1
        for name, array in decision.carry.items():
            np.copyto(carry[name], array)
        status.add("observed_decisions")
        if buffer.snapshot.interface.actions.agree(decision.action[0], row):
            status.add("agreed_decisions")

    def _act_despite(self, problem: Exception, snapshot: Snapshot, observation: Any, mask: Any) -> Any:
        """Decide although the observation or the decision of the policy cannot be used."""
        shared = self.shared
        shared.status.bad_input(problem)
        choice, action = shared.on_bad_input, None
        if choice is BadInputChoice.HOLD:
            action = self.previous_action()
        if action is None and choice is not BadInputChoice.RAISE and shared.fallback is not None:
            action, _ = shared.fallback.decide(observation, mask, snapshot.interface)
            shared.status.add("fallback_decisions")
        if action is None:
            raise problem
        self._last_action = action
        self.record.leave_out()
        return action

    def previous_action(self) -> Any:
        """The action of the last decision; None before the first."""
        action = self.record.last_action()
        return self._last_action if action is None else action

    def reward(self, value: float, decision: int | None = None, *, final: bool = False) -> None:
        """Add to the reward of the latest decision, or of that with this id. Rewards that are too late are counted.

        `final`: no more rewards come for it. A segment of such decisions is sent at once.
        """
        if (path := self.path) is not None and not final and path.reward(value, decision):
            return
        number = float(value)
        if not abs(number) <= _LARGEST_REWARD:
            raise ValueError(f"Got the reward {number}; expected a finite number. Leave it out if it is not known.")
        record = self.record
        sealed: Sealed = []
        with self.lock:
            index = record.decisions - 1 if decision is None else decision
            if not 0 <= index < record.decisions:
                raise ValueError(f"There is no decision {index}; this episode has taken {record.decisions} of them.")
            buffer = record.buffer
            if not final and buffer is not None and buffer.start <= index < buffer.end:
                buffer.reward[index - buffer.start] += number
                return
            if not record.add_reward(number, index):
                self.shared.status.add("late_rewards")
            elif final:
                record.settle(index, sealed)
        for segment, origin in sealed:
            self.shared.post(segment, origin)

    def take_step(self) -> RecordedStep | None:
        """Take the latest decision out of the record, for a program that chooses later what is recorded.

        Call it after every `act` of an episode or after none. None if the decision was not recorded.
        """
        if (path := self.path) is not None:
            step = path.take_step()
            if step is not NotImplemented:
                plan, observation, action, extras = step
                return RecordedStep(plan.snapshot, observation, action, extras, NO_CARRY)
        with self.lock:
            taken = self.record.take_step()
            if taken is not None and self.shared.native is not None:
                self._open_path(self.shared.native)
            return taken

    def end(
        self,
        final_observation: Any = None,
        ending: Ending = Ending.TERMINATED,
        mask: Any = None,
        now: float | None = None,
    ) -> None:
        """End the episode; a second call changes nothing.

        Where decisions have times, `now` is that of the final observation; without it no time counts as elapsed.
        After a truncation, learning needs the final observation to bootstrap from. Without one the last decision is not
        sent, since its outcome is unknown, and counted under `no_final_observation`.
        """
        if ending is Ending.CONTINUES:
            raise ValueError("An episode ends as TERMINATED or TRUNCATED; one that continues needs no end.")
        with self.lock:
            if self.ended:
                return
            self.record.finish(final_observation, mask, ending, now)
            self.ended = True
            self.path = self.lane.path = None
            sealed = self.record.take_all()
        for segment, origin in sealed:
            self.shared.post(segment, origin)
        self.shared.release(self.lane)
