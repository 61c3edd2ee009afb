"""Decides for many episodes at once on the server: one question with a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.bad_input import BAD_INPUT
from rl4sys.client.batch_problems import Problems, require_deciders
from rl4sys.client.episode import Episode
from rl4sys.client.episode_record import Sealed
from rl4sys.client.segment_buffer import SegmentBuffer
from rl4sys.client.server_policy import AskedRow, NoAnswer, ServerDecision
from rl4sys.client.shared_state import SharedState
from rl4sys.client.snapshot import Snapshot


class ServerDecisionBatch:
    """One decision for each of several episodes, whose locks are held meanwhile, within one deadline."""

    def __init__(self, shared: SharedState, plan: ActingPlan, snapshot: Snapshot, episodes: Sequence[Episode]) -> None:
        self._shared, self._plan, self._snapshot, self._episodes = shared, plan, snapshot, episodes
        self.actions: list[Any] = [None] * len(episodes)
        self.sealed: Sealed = []
        self._deadline = shared.clock() + shared.server_policy.timeout

    def decide(self, rows: Sequence[Any], masks: Sequence[Any] | None) -> Problems:
        """Decide and record, or raise before anything is recorded; returns the problems of rows that are left over."""
        buffers, problems = self._observe(rows, [None] * len(rows) if masks is None else masks)
        require_deciders(self._shared, self._episodes, problems)
        most = self._shared.server_policy.most_rows()
        indices = list(buffers)
        answers: dict[int, tuple[ServerDecision, int]] = {}
        for first in range(0, len(indices), most):
            self._ask(indices[first : first + most], buffers, answers, problems)
        require_deciders(self._shared, self._episodes, problems)
        for index, (answer, row) in answers.items():
            self._record(index, buffers[index], answer, row)
        return problems

    def _observe(self, rows: Sequence[Any], masks: Sequence[Any]) -> tuple[dict[int, SegmentBuffer], Problems]:
        """The buffers with the observations in their present rows, by index, and the problems of the others."""
        buffers: dict[int, SegmentBuffer] = {}
        problems: Problems = {}
        for index, (episode, row, mask) in enumerate(zip(self._episodes, rows, masks, strict=True)):
            try:
                buffers[index] = episode.record.observe_undecided(self._plan, self._snapshot, row, mask)
            except BAD_INPUT as error:
                problems[index] = error
        return buffers, problems

    def _ask(
        self,
        indices: Sequence[int],
        buffers: Mapping[int, SegmentBuffer],
        answers: dict[int, tuple[ServerDecision, int]],
        problems: Problems,
    ) -> None:
        """Ask about some of the rows, one by one if the policy cannot decide on all of them."""
        left = self._deadline - self._shared.clock()
        episodes = [self._episodes[index] for index in indices]
        asked = [
            AskedRow(episode.lane, buffers[index], episode.record.carry)
            for index, episode in zip(indices, episodes, strict=True)
        ]
        try:
            if left <= 0.0:
                raise NoAnswer("The deadline was over before this row was asked about.")
            answer = self._shared.server_policy.decide(asked, left)
        except NoAnswer as error:
            problems |= dict.fromkeys(indices, error)
        except BAD_INPUT as error:
            if len(indices) == 1:
                problems[indices[0]] = error
                return
            for index in indices:
                self._ask([index], buffers, answers, problems)
        else:
            answers |= {index: (answer, row) for row, index in enumerate(indices)}

    def _record(self, index: int, buffer: SegmentBuffer, answer: ServerDecision, row: int) -> None:
        episode = self._episodes[index]
        record, before = episode.record, episode.record.decisions
        self.actions[index] = episode.take_answer(self._plan, buffer, answer, row)
        record.seal_due(before, self.sealed)
        record.slow_at = record.next_slow()
