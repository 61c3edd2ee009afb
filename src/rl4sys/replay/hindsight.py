"""Replay that learns from failures: what was reached instead is taken for the goal (arXiv:1707.01495)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from rl4sys.experience import Array, Ending, Segment, Transitions
from rl4sys.replay.buffer_context import UnsuitableBuffer
from rl4sys.replay.columns import Columns
from rl4sys.replay.episode_spans import UNFINISHED, EpisodeSpans, Places
from rl4sys.replay.goal_rewards import ACHIEVED, DESIRED, GoalReward
from rl4sys.replay.pace import Ratio
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.storage import Storage
from rl4sys.state import State

_log = logging.getLogger(__name__)

_TOLERANCE = 1e-4
"""Rewards that differ less are the same, computed in another precision."""

Strategy: TypeAlias = Literal["future", "final", "episode"]


@dataclass(frozen=True, slots=True)
class Hindsight:
    """How many transitions get another goal, and which."""

    goal_reward: GoalReward
    strategy: Strategy = "future"
    """A goal that was reached later in the episode, at its end, or anywhere in it (sec. 4.5)."""
    relabel: int = 4
    """Transitions with another goal for each one with its own."""

    def __post_init__(self) -> None:
        if self.relabel < 0:
            raise ValueError(f"relabel={self.relabel}: choose 0 or more.")


class HindsightBuffer(ReplayBuffer):
    """Keeps the newest `capacity` transitions and draws them uniformly; most of a batch gets other goals at the draw.

    The rows are those of any replay: what is saved does not depend on goals. A transition gets another goal once its
    episode is over; before that it is drawn as it is.
    """

    def __init__(
        self,
        capacity: int,
        pace: Ratio,
        rng: np.random.Generator,
        hindsight: Hindsight,
        storage: Storage | None = None,
    ) -> None:
        super().__init__(Columns(capacity, storage=storage), pace, rng)
        self._spans = EpisodeSpans(capacity)
        self._is_indexed = True
        self._goal_reward = hindsight.goal_reward
        self._choose = _STRATEGIES[hindsight.strategy]
        self._relabelled = round(self._batch_size * hindsight.relabel / (hindsight.relabel + 1))
        self._otherwise = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Besides `added` and `overwritten`, how many rewards were not what the goal reward says."""
        return {**super().counts, "rewarded_otherwise": self._otherwise}

    def _append(self, segment: Segment) -> None:
        self._index()
        self._compare(segment)
        start = self.total
        goes_on = self._columns.append(segment)
        is_over = segment.ending is not Ending.CONTINUES
        ids = range(start, self.total)
        self._spans.add(segment.stream, ids, self.first, goes_on=goes_on, is_over=is_over)

    def _draw(self) -> Transitions:
        self._index()
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        batch = self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
        # Draws are independent: the first so many are as good as any.
        rows: slice | Array = slice(self._relabelled)
        places = self._spans.places(ids[rows])
        is_over = places.own != UNFINISHED
        if not is_over.all():
            rows = np.flatnonzero(is_over)
            places = places.of(rows)
        if len(places.own):
            chosen = self._choose(self._spans, places, self.first, self._rng)
            self._relabel(batch, rows, self._columns.followed_by(ACHIEVED, self._spans.ids(chosen)))
        return batch

    def _relabel(self, batch: Transitions, rows: slice | Array, goal: Array) -> None:
        """Give some rows of a batch, whose arrays are its own, other goals, and what follows from them."""
        achieved, desired = batch.next_observation[ACHIEVED][rows], batch.observation[DESIRED]
        batch.reward[rows] = self._goal_reward.reward(achieved, goal)
        ends = self._goal_reward.ends(achieved, goal)
        if ends is not None:
            # What ended because its own goal was reached would have gone on; other ends remain.
            ended = np.asarray(self._goal_reward.ends(achieved, desired[rows]))
            batch.discount[rows] = np.where(ends, 0.0, np.where(ended, 1.0, batch.discount[rows]))
        desired[rows] = goal
        batch.next_observation[DESIRED][rows] = goal

    def _index(self) -> None:
        """After a restore, find out which rows belong together: once all of them are back."""
        if not self._is_indexed:
            self._spans.rebuild(*self._columns.chains(), self.first)
            self._is_indexed = True

    def _compare(self, segment: Segment) -> None:
        """Count the rewards that are not what the goal reward says; tell of the first."""
        shapes = [segment.observation[name].shape for name in (ACHIEVED, DESIRED) if name in segment.observation]
        if len(shapes) != 2 or shapes[0] != shapes[1]:
            raise UnsuitableBuffer(without_goals(segment.observation))
        achieved, desired = segment.observation[ACHIEVED][1:], segment.observation[DESIRED][:-1]
        expected = np.asarray(self._goal_reward.reward(achieved, desired), np.float32)
        differs = np.flatnonzero(np.abs(segment.reward - expected) > _TOLERANCE * np.maximum(1.0, np.abs(expected)))
        if len(differs) and not self._otherwise:
            step = int(differs[0])
            _log.warning(
                "Step %d of episode %d was rewarded with %g; buffer.goal_reward says %g. Transitions with another goal "
                "are rewarded by the latter: make sure that it is what the environment does.",
                *(segment.start + step, segment.episode, segment.reward[step], expected[step]),
            )
        self._otherwise += len(differs)

    def _own_state(self) -> State:
        return {"rewarded_otherwise": self._otherwise}

    def _restore_own(self, state: State) -> None:
        self._otherwise = int(state["rewarded_otherwise"])
        self._is_indexed = False


def without_goals(names: Iterable[str]) -> str:
    """Why hindsight cannot work with observations of these names."""
    return (
        f"Hindsight needs observation arrays '{ACHIEVED}' and '{DESIRED}' of one shape, and gets {sorted(names)}. "
        f"Use an environment with goals, without environment.flatten_obs, or set buffer.type=uniform."
    )


def _future(spans: EpisodeSpans, places: Places, first: int, rng: np.random.Generator) -> Array:
    return _between(places.own, places.last, rng)


def _final(spans: EpisodeSpans, places: Places, first: int, rng: np.random.Generator) -> Array:
    return places.last


def _episode(spans: EpisodeSpans, places: Places, first: int, rng: np.random.Generator) -> Array:
    return _between(spans.held_since(places, first), places.last, rng)


def _between(begin: Array, last: Array, rng: np.random.Generator) -> Array:
    """One place of each stretch from `begin` to `last`, all equally likely."""
    steps: Array = (rng.random(len(begin)) * (last - begin + 1)).astype(np.int64)
    return np.add(begin, steps)


_STRATEGIES: dict[Strategy, Callable[[EpisodeSpans, Places, int, np.random.Generator], Array]] = {
    "future": _future,
    "final": _final,
    "episode": _episode,
}
