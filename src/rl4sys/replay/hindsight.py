"""Hindsight experience replay: learns from failures by replacing the goal with one that was reached.

Andrychowicz et al., 2017, arXiv:1707.01495.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rl4sys.experience import Array, Ending, Segment, Transitions
from rl4sys.replay.buffer_context import UnsuitableBuffer
from rl4sys.replay.columns import Columns
from rl4sys.replay.episode_spans import UNFINISHED, EpisodeSpans, Positions
from rl4sys.replay.frame_column import Stacks
from rl4sys.replay.goal_rewards import ACHIEVED, DESIRED, GoalReward
from rl4sys.replay.pace import Ratio
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.storage import Storage
from rl4sys.state import State

_log = logging.getLogger(__name__)

_TOLERANCE = 1e-4
"""Rewards that differ less than this count as equal: they may be computed in another precision."""

Strategy: TypeAlias = Literal["future", "final", "episode"]


@dataclass(frozen=True, slots=True)
class Hindsight:
    """How many transitions get another goal, and which goal."""

    goal_reward: GoalReward
    strategy: Strategy = "future"
    """Take a goal that was reached later in the episode, at its end, or anywhere in it (sec. 4.5)."""
    relabel: int = 4
    """Relabelled transitions for each transition that keeps its goal."""

    def __post_init__(self) -> None:
        if self.relabel < 0:
            raise ValueError(f"relabel is {self.relabel}: choose 0 or more.")


class HindsightBuffer(ReplayBuffer[Transitions]):
    """Keeps the newest `capacity` transitions and draws them uniformly; most of each batch is relabelled when drawn.

    The stored rows are those of any replay buffer: what is saved does not depend on relabelling. A transition is
    relabelled only after its episode has ended; before that it keeps its goal.
    """

    def __init__(
        self,
        capacity: int,
        pace: Ratio,
        rng: np.random.Generator,
        hindsight: Hindsight,
        storage: Storage | None = None,
        stacks: Stacks | None = None,
    ) -> None:
        super().__init__(Columns(capacity, storage=storage, stacks=stacks), pace, rng)
        self._spans = EpisodeSpans(capacity)
        self._is_indexed = True
        self._goal_reward = hindsight.goal_reward
        self._choose = _STRATEGIES[hindsight.strategy]
        self._relabelled = round(self._batch_size * hindsight.relabel / (hindsight.relabel + 1))
        self._reward_mismatches = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Besides `added` and `overwritten`, how many rewards differed from the goal reward."""
        return {**super().counts, "rewarded_otherwise": self._reward_mismatches}

    def _append(self, segment: Segment) -> None:
        self._index()
        self._compare_rewards(segment)
        start = self.total
        continues = self._columns.append(segment)
        is_over = segment.ending is not Ending.CONTINUES
        ids = range(start, self.total)
        self._spans.add(segment.stream, ids, self.first, continues=continues, is_over=is_over)

    def _draw(self) -> Transitions:
        self._index()
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        batch = self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
        # Draws are independent, so it does not matter which rows are relabelled: take the first.
        rows: slice | Array = slice(self._relabelled)
        positions = self._spans.positions(ids[rows])
        is_over = positions.own != UNFINISHED
        if not is_over.all():
            rows = np.flatnonzero(is_over)
            positions = positions.select(rows)
        if len(positions.own):
            chosen = self._choose(self._spans, positions, self.first, self._rng)
            self._relabel(batch, rows, self._columns.next_observation(ACHIEVED, self._spans.ids(chosen)))
        return batch

    def _relabel(self, batch: Transitions, rows: slice | Array, goal: Array) -> None:
        """Replace the goals of some rows of a batch in place, and their rewards and discounts accordingly."""
        achieved, desired = batch.next_observation[ACHIEVED][rows], batch.observation[DESIRED]
        batch.reward[rows] = self._goal_reward.reward(achieved, goal)
        ends = self._goal_reward.ends(achieved, goal)
        if ends is not None:
            # An episode that ended only because its own goal was reached would have continued; other endings remain.
            ended = np.asarray(self._goal_reward.ends(achieved, desired[rows]))
            batch.discount[rows] = np.where(ends, 0.0, np.where(ended, 1.0, batch.discount[rows]))
        desired[rows] = goal
        batch.next_observation[DESIRED][rows] = goal

    def _index(self) -> None:
        """Find the episode spans of the rows loaded after `restore`; deferred until all of them are there."""
        if not self._is_indexed:
            self._spans.rebuild(*self._columns.successors(), self.first)
            self._is_indexed = True

    def _compare_rewards(self, segment: Segment) -> None:
        """Count the rewards that differ from the goal reward, and warn about the first."""
        shapes = [segment.observation[name].shape for name in (ACHIEVED, DESIRED) if name in segment.observation]
        if len(shapes) != 2 or shapes[0] != shapes[1]:
            raise UnsuitableBuffer(without_goals(segment.observation))
        achieved, desired = segment.observation[ACHIEVED][1:], segment.observation[DESIRED][:-1]
        expected = np.asarray(self._goal_reward.reward(achieved, desired), np.float32)
        differs = np.flatnonzero(np.abs(segment.reward - expected) > _TOLERANCE * np.maximum(1.0, np.abs(expected)))
        if len(differs) and not self._reward_mismatches:
            step = int(differs[0])
            _log.warning(
                "Step %d of episode %d has reward %g; buffer.goal_reward gives %g. Relabelled transitions get the "
                "latter: make sure that it matches the environment.",
                *(segment.start + step, segment.episode, segment.reward[step], expected[step]),
            )
        self._reward_mismatches += len(differs)

    def _own_state(self) -> State:
        return {"rewarded_otherwise": self._reward_mismatches}

    def _restore_own(self, state: State) -> None:
        self._reward_mismatches = int(state["rewarded_otherwise"])
        self._is_indexed = False


def without_goals(names: Iterable[str]) -> str:
    """The error message for observations without goals."""
    return (
        f"Hindsight replay needs observation arrays '{ACHIEVED}' and '{DESIRED}' of equal shape; got {sorted(names)}. "
        f"Use an environment with goals, without environment.flatten_obs, or set buffer.type=uniform."
    )


def _future(spans: EpisodeSpans, positions: Positions, oldest: int, rng: np.random.Generator) -> Array:
    return _between(positions.own, positions.last, rng)


def _final(spans: EpisodeSpans, positions: Positions, oldest: int, rng: np.random.Generator) -> Array:
    return positions.last


def _episode(spans: EpisodeSpans, positions: Positions, oldest: int, rng: np.random.Generator) -> Array:
    return _between(spans.first_held(positions, oldest), positions.last, rng)


def _between(first: Array, last: Array, rng: np.random.Generator) -> Array:
    """A uniformly drawn position between `first` and `last`, for each row."""
    steps: Array = (rng.random(len(first)) * (last - first + 1)).astype(np.int64)
    return np.add(first, steps)


_STRATEGIES: dict[Strategy, Callable[[EpisodeSpans, Positions, int, np.random.Generator], Array]] = {
    "future": _future,
    "final": _final,
    "episode": _episode,
}
