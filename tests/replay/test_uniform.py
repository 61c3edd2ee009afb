from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import Ending, Transitions
from rl4sys.replay import Ratio, UniformBuffer

from .segments import segment


def buffer_of(capacity: int, n_step: int = 1, batch_size: int = 200) -> UniformBuffer:
    return UniformBuffer(capacity, Ratio(1, 0, batch_size), np.random.default_rng(0), n_step)


def drawn(buffer: UniformBuffer) -> Transitions:
    return next(buffer.due())


def test_the_columns_of_a_batch_belong_to_the_same_transitions() -> None:
    buffer = buffer_of(capacity=100)
    buffer.add(segment(30, lane=1, episode=2))
    batch = drawn(buffer)
    clock = batch.observation["clock"]
    assert set(batch.ids) == set(range(30))
    np.testing.assert_array_equal(clock, 10_200 + batch.ids)
    np.testing.assert_array_equal(batch.next_observation["clock"], clock + 1)
    np.testing.assert_array_equal(batch.observation["state"][:, 1], clock)
    np.testing.assert_array_equal(batch.reward, clock + 1)
    np.testing.assert_array_equal(batch.extras["log_prob"], -clock - 1)
    np.testing.assert_array_equal(batch.action, batch.ids)
    assert batch.weight.tolist() == batch.span.tolist() == [1] * 200


def test_only_termination_sets_the_discount_to_zero() -> None:
    buffer = buffer_of(capacity=10)
    for number, ending in enumerate((Ending.TERMINATED, Ending.TRUNCATED, Ending.CONTINUES)):
        buffer.add(segment(2, episode=number, ending=ending))
    batch = drawn(buffer)
    np.testing.assert_array_equal(batch.discount, batch.ids != 1)


def test_the_newest_transitions_overwrite_the_oldest() -> None:
    buffer = buffer_of(capacity=10)
    for start in range(0, 24, 3):
        buffer.add(segment(3, start=start))
    batch = drawn(buffer)
    assert (buffer.first, buffer.total) == (14, 24)
    assert set(batch.ids) == set(range(14, 24))
    np.testing.assert_array_equal(batch.observation["clock"], batch.ids)
    assert buffer.counts == {"added": 24, "overwritten": 14}


@pytest.mark.parametrize("n_step", [1, 3])
def test_the_end_of_a_segment_longer_than_the_capacity_is_kept(n_step: int) -> None:
    buffer = buffer_of(capacity=4, n_step=n_step)
    buffer.add(segment(3))
    buffer.add(segment(11, start=3))
    batch = drawn(buffer)
    assert set(batch.ids) == {10, 11, 12, 13}
    np.testing.assert_array_equal(batch.next_observation["clock"], np.minimum(batch.ids + n_step, 14))


def test_later_segments_do_not_change_a_drawn_batch() -> None:
    buffer = buffer_of(capacity=4)
    buffer.add(segment(4))
    batch = drawn(buffer)
    before = batch.observation["clock"].copy()
    buffer.add(segment(4, start=4))
    drawn(buffer)
    np.testing.assert_array_equal(batch.observation["clock"], before)


def test_every_transition_is_equally_likely() -> None:
    buffer = buffer_of(capacity=20, batch_size=20_000)
    buffer.add(segment(20))
    times = np.bincount(drawn(buffer).ids, minlength=20)
    assert ((times - 1000) ** 2 / 1000).sum() < 40  # χ² with 19 degrees of freedom exceeds 43.8 once in a thousand


def test_batches_are_due_at_the_ratio_after_the_warmup() -> None:
    buffer = UniformBuffer(50, Ratio(0.25, 10, batch_size=2), np.random.default_rng(0))
    due = []
    for start in range(0, 30, 3):
        buffer.add(segment(3, start=start))
        due.append(len(list(buffer.due())))
    assert due == [0, 0, 0, 0, 1, 1, 0, 1, 1, 1]


def test_windows_of_zero_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="n_step 0"):
        buffer_of(capacity=4, n_step=0)
