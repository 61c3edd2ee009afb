"""Decides for many episodes at once: one run of the policy, with the choices and the record of single decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from time import perf_counter_ns
from typing import Any

import numpy as np

from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.bad_input import BAD_INPUT
from rl4sys.client.batch_problems import Problems, require_deciders
from rl4sys.client.episode import Episode, EpisodeEnded
from rl4sys.client.episode_record import Sealed
from rl4sys.client.lane import Lane
from rl4sys.client.lane_allocator import FEW_LANES
from rl4sys.client.observation_reader import not_finite
from rl4sys.client.segment_buffer import SegmentBuffer
from rl4sys.client.server_decision_batch import ServerDecisionBatch
from rl4sys.client.shared_state import SharedState
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import Array, Arrays, DecidedBy
from rl4sys.policy import Decision, NoAllowedAction, RunningPolicy, noise_rows

_by_lane = attrgetter("lane.stream.lane")


def act_many(
    shared: SharedState, episodes: Sequence[Episode], observations: Any, masks: Any, now: float | None
) -> list[Any]:
    """The action for each episode. If a bad observation is to raise, nothing is decided for any of them."""
    rows = _rows(observations, len(episodes), "observations")
    allowed = None if masks is None else _rows(masks, len(episodes), "masks")
    each = [None] * len(episodes) if allowed is None else allowed
    if len(set(episodes)) < len(episodes):
        raise ValueError("An episode appears twice; each takes one decision at a time.")
    plan = shared.governor.plan
    if len(episodes) < 2 or plan.decided_by is DecidedBy.FALLBACK or plan.snapshot is None:
        return [episode.act(row, mask, now) for episode, row, mask in zip(episodes, rows, each, strict=True)]
    batch: DecisionBatch | ServerDecisionBatch = (
        ServerDecisionBatch(shared, plan, plan.snapshot, episodes)
        if plan.asks
        else DecisionBatch(shared, plan, plan.snapshot, episodes)
    )
    began = perf_counter_ns()
    try:
        with _locked(episodes, shared):
            for episode in episodes:
                if now is not None or episode.record.now is not None:
                    episode.record.follow(now)
            problems = batch.decide(rows, allowed)
            if now is not None:
                for index, episode in enumerate(episodes):
                    if index not in problems:
                        episode.record.decided_at(now)
    finally:
        # Outside the locks: with `overflow: block` posting may wait, and rewards must not.
        for segment, origin in batch.sealed:
            shared.post(segment, origin)
    shared.times.add((perf_counter_ns() - began) // len(episodes), len(episodes))
    for index, problem in problems.items():
        batch.actions[index] = episodes[index].act_slowly(rows[index], each[index], problem, now)
    return batch.actions


@contextmanager
def _locked(episodes: Sequence[Episode], shared: SharedState) -> Iterator[None]:
    """Hold the locks of open episodes of one agent."""
    held = []
    try:
        # Always in the same order, so that two threads never wait for each other.
        for episode in sorted(episodes, key=_by_lane):
            episode.lock.acquire()
            held.append(episode)
            if episode.ended or episode.shared is not shared:
                raise EpisodeEnded(
                    "Got an episode that has ended or belongs to another agent; start one with episode()."
                )
        yield
    finally:
        for episode in held:
            episode.lock.release()


class DecisionBatch:
    """One decision for each of several episodes, whose locks are held meanwhile."""

    def __init__(self, shared: SharedState, plan: ActingPlan, snapshot: Snapshot, episodes: Sequence[Episode]) -> None:
        self._shared, self._plan, self._snapshot, self._episodes = shared, plan, snapshot, episodes
        self.actions: list[Any] = [None] * len(episodes)
        self.sealed: Sealed = []

    def decide(self, rows: Sequence[Any], masks: Sequence[Any] | None) -> Problems:
        """Decide and record, or raise before anything is recorded; returns the problems of rows that are left over."""
        # Rows of one array are checked together and copied as they are.
        plain = self._snapshot.interface.reader.plain_rows(rows) if masks is None else None
        buffers, problems = self._observe(rows, [None] * len(rows) if masks is None else masks, plain)
        policy = self._shared.policies.at(self._snapshot)
        if policy.spec.head.mask is not None:
            problems |= self._forbidden(policy, policy.spec.head.mask, buffers)
        decision: Decision | None = None
        if buffers:
            is_whole = len(buffers) == len(rows)
            observation = {plain: np.asarray(rows)} if plain and is_whole else self._stacked(buffers)
            decision, finite = policy.act_on_rows(observation, *self._chances(buffers))
            if not finite.all():
                problems |= {index: not_finite() for index, ok in zip(buffers, finite.tolist(), strict=True) if not ok}
        if problems:
            require_deciders(self._shared, self._episodes, problems)
        if decision is not None:
            self._record(buffers, decision, problems)
        return problems

    def _observe(
        self, rows: Sequence[Any], masks: Sequence[Any], plain: str | None
    ) -> tuple[dict[int, SegmentBuffer], Problems]:
        """The buffers with the observations in their present rows, by index, and the problems of the others."""
        plan, snapshot = self._plan, self._snapshot
        buffers: dict[int, SegmentBuffer] = {}
        problems: Problems = {}
        for index, (episode, row, mask) in enumerate(zip(self._episodes, rows, masks, strict=True)):
            record = episode.record
            buffer = record.buffer
            try:
                if buffer is None or buffer.acting is not plan or record.decisions >= record.slow_at:
                    record.slow_at = 0
                    buffer = record.observe(plan, snapshot, row, mask)
                elif plain is not None:
                    buffer.observation[plain][buffer.count] = row
                else:
                    buffer.write(buffer.observation, buffer.count, row, mask)
                buffers[index] = buffer
            except BAD_INPUT as error:
                problems[index] = error
        return buffers, problems

    def _forbidden(self, policy: RunningPolicy, mask: str, buffers: dict[int, SegmentBuffer]) -> Problems:
        """Take rows whose mask allows nothing out of the buffers."""
        problems: Problems = {}
        for index, buffer in list(buffers.items()):
            if not buffer.observation[mask][buffer.count].all():
                lane, carry = self._episodes[index].lane, self._episodes[index].record.carry
                try:
                    policy.act_on_row(buffer.observation, buffer.count, lane.noise.at(lane.decisions), carry or None)
                except NoAllowedAction as error:
                    problems[index] = error
                    del buffers[index]
        return problems

    def _stacked(self, buffers: Mapping[int, SegmentBuffer]) -> Arrays:
        columns = [(buffer.observation, buffer.count) for buffer in buffers.values()]
        return {name: np.array([arrays[name][row] for arrays, row in columns]) for name in columns[0][0]}

    def _chances(self, buffers: Mapping[int, SegmentBuffer]) -> tuple[Array, Arrays | None]:
        """Noise and memory, with a row for each buffer."""
        episodes = [self._episodes[index] for index in buffers]
        noise = self._noise([episode.lane for episode in episodes])
        names = episodes[0].record.carry
        carry = {name: np.concatenate([episode.record.carry[name] for episode in episodes]) for name in names}
        return noise, carry or None

    def _noise(self, lanes: Sequence[Lane]) -> Array:
        """The noise of the next decision of each lane."""
        native, size = self._shared.native, self._snapshot.interface.noise_size
        if native is None and len(lanes) <= FEW_LANES:
            return np.concatenate([lane.noise.at(lane.decisions) for lane in lanes])
        keys, steps = [lane.noise.key for lane in lanes], [lane.decisions for lane in lanes]
        return noise_rows(keys, steps, size) if native is None else native.noise_rows(keys, steps, size)

    def _record(self, buffers: Mapping[int, SegmentBuffer], decision: Decision, problems: Problems) -> None:
        # Elements of lists are assigned faster than those of arrays.
        action, extras = _listed(decision.action), {name: _listed(array) for name, array in decision.extras.items()}
        for row, (index, buffer) in enumerate(buffers.items()):
            if index in problems:
                continue
            episode = self._episodes[index]
            record = episode.record
            before = record.decisions
            buffer.record(action, extras, row)
            episode.lane.decisions += 1
            record.decisions = before + 1
            for name, memory in record.carry.items():
                memory[0] = decision.carry[name][row]
            if before >= record.slow_at:
                record.seal_due(before, self.sealed)
                record.slow_at = record.next_slow()
            self.actions[index] = buffer.finish(decision.action[row : row + 1])


def _listed(array: Array) -> Any:
    return array.tolist() if array.ndim == 1 else array


def _rows(values: Any, count: int, what: str) -> Sequence[Any]:
    """One value for each episode, from a sequence, an array [N, …], or named arrays [N, …]."""
    if isinstance(values, Mapping):
        named = {name: _rows(array, count, f"{what}['{name}']") for name, array in values.items()}
        return [{name: array[row] for name, array in named.items()} for row in range(count)]
    if len(values) != count:
        raise ValueError(f"Got {len(values)} {what} for {count} episodes; pass one for each, in the same order.")
    return values  # type: ignore[no-any-return]  # anything with a length and rows
