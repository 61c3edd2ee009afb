from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.engine import SequencePlan, stream_returns
from rl4sys.experience import Array

GAMMA = np.float32(0.9)


def streams(seed: int, count: int = 4, length: int = 9) -> tuple[Array, Array, Array]:
    """Random rewards, discounts and acted rows; no two rows without an action follow each other."""
    rng = np.random.default_rng(seed)
    acted = rng.random((count, length)) > 0.25
    acted[:, 1:] |= ~acted[:, :-1]
    reward = rng.normal(size=acted.shape).astype(np.float32) * acted
    ends = np.zeros_like(acted)
    ends[:, :-1] = acted[:, :-1] & ~acted[:, 1:]
    discount = np.where(ends & (rng.random(acted.shape) < 0.5), 0.0, 1.0).astype(np.float32)
    return reward, discount, acted


def by_loop(reward: Array, discount: Array, acted: Array, row: int, n_step: int) -> tuple[float, float, int]:
    """The return of one row of one stream, step by step."""
    total, factor = 0.0, 1.0
    if not acted[row] or row == len(reward) - 1:
        return 0.0, 0.0, row
    for _ in range(n_step):
        total += factor * reward[row]
        factor *= GAMMA * discount[row]
        row += 1
        if not acted[row] or row == len(reward) - 1:
            break
    return total, factor, row


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n_step=st.integers(1, 5))
def test_returns_equal_those_of_a_loop_over_steps(seed: int, n_step: int) -> None:
    reward, discount, acted = streams(seed)
    found = stream_returns(reward, discount, acted, GAMMA, n_step)
    for stream in range(len(reward)):
        for row in range(reward.shape[1]):
            total, factor, following = by_loop(reward[stream], discount[stream], acted[stream], row, n_step)
            np.testing.assert_allclose(found.reward[stream, row], total, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.discount[stream, row], factor, rtol=1e-5)
            assert found.next_row[stream, row] == following


def test_a_batch_of_sequences_has_about_the_steps_of_a_batch_of_transitions() -> None:
    plan = SequencePlan(burn_in=8, length=16, n_step=3)
    assert plan.rows == 27
    assert (plan.sequences(128), plan.sequences(10)) == (8, 1)
