"""One episode of a live system: act, reward, end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

from rl4sys.client.draft import Draft
from rl4sys.client.forks import explain, forks
from rl4sys.client.lanes import Lane
from rl4sys.client.snapshot import Newest, Snapshot, ThreadPolicies
from rl4sys.client.tally import Tally
from rl4sys.experience import Array, Ending, Segment
from rl4sys.wire import SegmentFormat

Fallback = Callable[[Any], Any]
"""Decides about an observation, as the system passed it, while there is no policy yet."""


_LARGEST_REWARD = float(np.finfo(np.float32).max)


class EpisodeEnded(ValueError):
    """An episode that is over is asked to act."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """What all episodes of an agent share."""

    newest: Newest
    policies: ThreadPolicies
    tally: Tally
    post: Callable[[Segment, Snapshot], None]
    release: Callable[[Lane], None]
    longest: int
    """Steps of one segment at most."""
    reward_window: int
    fallback: Fallback | None
    forks: int


class Episode:
    """Decides and records. Rewards may come from another thread than decisions.

    Nothing here waits for the network: a decision reads the newest snapshot once, by reference. A segment is cut when
    it is full, when new weights arrived and when the episode ends; it is sealed, so that it can be sent, once its last
    decision is older than the newest `reward_window` ones.
    """

    def __init__(self, workplace: Workplace, lane: Lane) -> None:
        self._workplace = workplace
        self._lane = lane
        self._lock = threading.Lock()
        self._draft: Draft | None = None
        self._held: list[Draft] = []
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
        """The id of the latest decision, for rewards that come late; -1 before the first."""
        return self._decisions - 1

    @property
    def ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended

    def act(self, observation: Any, mask: Any = None) -> Any:
        """The action for what is observed now: a number for one choice, else an array."""
        workplace = self._workplace
        if workplace.forks != forks():
            raise explain()
        with self._lock:
            draft, snapshot = self._draft, workplace.newest.snapshot
            if draft is not None and draft.snapshot is snapshot and draft.count < draft.length and not self._held:
                # Almost always: nothing is complete, so there is nothing to seal.
                self._lane.reader.write(draft.observation, draft.count, observation, mask)
                return self._decide(draft)
        return self._act_between_drafts(observation, mask)

    def _act_between_drafts(self, observation: Any, mask: Any) -> Any:
        workplace = self._workplace
        sealed: list[tuple[Segment, Snapshot]] = []
        try:
            with self._lock:
                if self._ended:
                    raise EpisodeEnded("This episode has ended; start another one with agent.episode().")
                snapshot = workplace.newest.snapshot
                if snapshot is None:
                    return self._fall_back(observation)
                return self._decide(self._observe(snapshot, observation, mask, sealed))
        finally:
            # Whatever was refused, what is complete goes out; and outside the lock, for where the overflow policy is to
            # wait, rewards must not wait too.
            for segment, origin in sealed:
                workplace.post(segment, origin)

    def _decide(self, draft: Draft) -> Any:
        """Decide about the present row of the draft, and note it there."""
        lane, carry = self._lane, self._carry
        decision = self._workplace.policies.at(draft.snapshot).act_on_row(
            draft.observation, draft.count, lane.noise.at(lane.decisions), carry or None
        )
        draft.record(decision)
        lane.decisions += 1
        self._decisions += 1
        if carry:
            for name, array in decision.carry.items():
                np.copyto(carry[name], array)
        return lane.finish_action(decision.action)

    def reward(self, value: float, decision: int | None = None) -> None:
        """Add to the reward of the latest decision, or of the one with this id. What is too late is counted."""
        number = float(value)
        if not abs(number) <= _LARGEST_REWARD:
            raise ValueError(f"Got the reward {number}; expected a finite number. Leave it out if it is not known.")
        with self._lock:
            index = self._decisions - 1 if decision is None else decision
            if not 0 <= index < self._decisions:
                raise ValueError(f"There is no decision {index}; this episode has taken {self._decisions} of them.")
            if index < self._unrecorded:
                return
            draft = self._draft
            if draft is not None and draft.start <= index < draft.end:
                draft.reward[index - draft.start] += number
                return
            for held in reversed(self._held):
                if held.start <= index < held.end:
                    held.reward[index - held.start] += number
                    return
        self._workplace.tally.add("late_rewards")

    def end(self, final_observation: Any = None, ending: Ending = Ending.TERMINATED, mask: Any = None) -> None:
        """The episode is over; ending it again changes nothing.

        After a truncation the value of what followed counts. If it was not observed, the last decision is not sent,
        since what it led to is unknown; it is counted under `no_final_observation`.
        """
        if ending is Ending.CONTINUES:
            raise ValueError("An episode ends as TERMINATED or TRUNCATED; one that continues needs no end.")
        with self._lock:
            if self._ended:
                return
            sealed = self._finish(final_observation, mask, ending)
            self._ended = True
        for segment, origin in sealed:
            self._workplace.post(segment, origin)
        self._workplace.release(self._lane)

    def _observe(
        self, snapshot: Snapshot, observation: Any, mask: Any, sealed: list[tuple[Segment, Snapshot]]
    ) -> Draft:
        """The draft with the observation in its present row; what can be sent now is added to `sealed`."""
        draft = self._draft
        if draft is not None and self._form is not snapshot.form:
            # Another policy altogether: what follows the last step cannot be written in its terms.
            sealed += self._seal_all(self._without_last(draft, "schema_changed"), Ending.TRUNCATED)
            draft = None
        if draft is None:
            draft = self._begin(snapshot)
        self._lane.reader.write(draft.observation, draft.count, observation, mask)
        if draft.count and (draft.count == draft.length or draft.snapshot is not snapshot):
            self._held.append(draft)
            following = self._lane.draft(snapshot, draft.length).begin(snapshot, draft.end, self._carry)
            following.continue_from(draft)
            draft = following
        elif draft.count == 0:
            draft.snapshot = snapshot
        self._draft = draft
        while self._held and self._held[0].end <= self._decisions - self._workplace.reward_window:
            sealed.append(self._seal(self._held.pop(0), Ending.CONTINUES))
        return draft

    def _begin(self, snapshot: Snapshot) -> Draft:
        """The first draft of the episode, or of another schema."""
        if self._form is not snapshot.form:
            self._form = snapshot.form
            self._carry = {spec.name: np.zeros((1, *spec.shape), np.float32) for spec in snapshot.form.schema.carry}
        self._lane.prepare(snapshot)
        draft = self._lane.draft(snapshot, min(self._workplace.longest, snapshot.max_steps))
        return draft.begin(snapshot, self._decisions, self._carry)

    def _finish(self, final_observation: Any, mask: Any, ending: Ending) -> list[tuple[Segment, Snapshot]]:
        draft = self._draft
        if draft is None:
            return []
        if final_observation is not None:
            self._lane.reader.write(draft.observation, draft.count, final_observation, mask)
        elif ending is Ending.TERMINATED:
            draft.repeat_last()
        else:
            draft = self._without_last(draft, "no_final_observation")
        return self._seal_all(draft, ending)

    def _seal_all(self, last: Draft, ending: Ending) -> list[tuple[Segment, Snapshot]]:
        drafts = [draft for draft in (*self._held, last) if draft.count]
        self._held, self._draft = [], None
        final = len(drafts) - 1
        return [self._seal(d, ending if number == final else Ending.CONTINUES) for number, d in enumerate(drafts)]

    def _seal(self, draft: Draft, ending: Ending) -> tuple[Segment, Snapshot]:
        segment = draft.seal(self._lane.stream, self._lane.episode, ending)
        self._lane.give_back(draft)
        return segment, draft.snapshot

    def _without_last(self, draft: Draft, reason: str) -> Draft:
        """What the last decision led to was never seen; up to it, all is true."""
        if draft.count:
            draft.count -= 1
            self._workplace.tally.add(f"drops:{reason}")
        return draft

    def _fall_back(self, observation: Any) -> Any:
        fallback = self._workplace.fallback
        if fallback is None:
            raise RuntimeError("There is no policy yet. Use rl4sys.connect, which waits for one.")
        self._decisions += 1
        self._unrecorded += 1
        self._workplace.tally.add("fallback_decisions")
        return fallback(observation)
