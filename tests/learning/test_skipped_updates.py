"""A learner skips updates that are not finite, and fails after too many in a row."""

from __future__ import annotations

from typing import Any

import pytest

from rl4sys.algorithms import Update
from rl4sys.learning import Diverged, Learner, OutOfMemory
from rl4sys.networks import NonFiniteUpdate
from rl4sys.replay import OnceFresh, TrajectoryBuffer

from .fakes import RecordingAlgorithm, experience


class Failing(RecordingAlgorithm):
    """Raises `NonFiniteUpdate` at the updates with these numbers."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self._numbers, self._tried = numbers, 0

    def update(self, batch: Any) -> Update:
        self._tried += 1
        if self._tried in self._numbers:
            raise NonFiniteUpdate("The loss is nan.")
        return super().update(batch)


def learner_of(*numbers: int, max_skipped_in_row: int = 2) -> Learner:
    return Learner(Failing(*numbers), TrajectoryBuffer(OnceFresh(12, 9)), max_skipped_in_row=max_skipped_in_row)


def test_skipped_updates_are_counted_separately_and_publish_nothing() -> None:
    learner = learner_of(2)
    versions = []
    for turn in range(3):
        learner.learn(experience(turn))
        versions.append((learner.store.latest, learner.skips.in_row))
    assert versions == [(1, 0), (1, 1), (2, 0)]
    assert (learner.updates, learner.skips.total) == (2, 1)


def test_on_skip_receives_the_batch_and_the_reason() -> None:
    learner = learner_of(1)
    got: list[tuple[int, str]] = []
    learner.on_skip = lambda batch, error: got.append((batch.steps, str(error)))
    learner.learn(experience(0))
    assert got == [(12, "The loss is nan.")]


def test_too_many_skipped_updates_in_a_row_raise_diverged() -> None:
    learner = learner_of(2, 3)
    learner.learn(experience(0))
    learner.learn(experience(1))
    with pytest.raises(Diverged, match=r"The last 2 updates were not finite .* step 36\. The loss is nan\."):
        learner.learn(experience(2))


def test_the_counts_are_saved_and_a_state_without_them_is_understood() -> None:
    learner, other = learner_of(2, max_skipped_in_row=9), learner_of()
    learner.learn(experience(0))
    learner.learn(experience(1))
    state = dict(learner.state())
    other.restore(state)
    assert (other.skips.total, other.skips.in_row) == (1, 1)
    del state["skips"]
    other.restore(state)
    assert (other.skips.total, other.skips.in_row) == (0, 0)


def test_a_rollback_publishes_the_earlier_weights_as_a_new_version() -> None:
    learner = learner_of()
    learner.learn(experience(0))
    state = learner.state()
    learner.learn(experience(1))
    learner.roll_back(state)
    assert (learner.store.latest, learner.steps, learner.updates) == (3, 24, 2)


def test_out_of_memory_is_reported_with_what_to_do() -> None:
    learner = learner_of()
    learner.watch(lambda update: _exhausted)
    with pytest.raises(OutOfMemory, match=r"update 1 at step 12.*can't allocate memory.*Lower algorithm\.batch_size"):
        learner.learn(experience(0))


def _exhausted(batch: Any) -> Update:
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.\nBacktrace")
