from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rl4sys.engine import explained_variance, generalized_advantage
from rl4sys.engine.tensor_batch import n_step_return
from rl4sys.experience import Array, Ending, Segment

from .problems import problem, segment, sequences, transitions

FACTORS = st.floats(0.0, 1.0)


def experience(seed: int) -> list[Segment]:
    """One stream: segments of any ending, some of which got lost."""
    rng, asked = np.random.default_rng(seed), problem()
    parts, episode, start = [], 0, 0
    for _ in range(rng.integers(1, 8)):
        steps, ending = int(rng.integers(1, 5)), Ending(int(rng.integers(3)))
        part = segment(rng, asked, steps, episode=episode, start=start, ending=ending)
        start += steps
        if ending is not Ending.CONTINUES:
            episode, start = episode + 1, 0
        if rng.random() < 0.8:
            parts.append(part)
    return parts or [part]


def joined(parts: list[Segment]) -> list[Segment]:
    """The observation after a segment is the first one of the next, where that continues it."""
    for earlier, later in pairwise(parts):
        if later.follows(earlier):
            earlier.observation["observation"][-1] = later.observation["observation"][0]
    return parts


def naive_advantages(parts: list[Segment], gamma: float, gae_lambda: float) -> list[float]:
    """Each advantage as the sum of all later errors of its unbroken piece: the definition, in O(n²)."""
    pieces: list[list[float]] = []
    for index, part in enumerate(parts):
        value = part.observation["observation"][:, 0].astype(np.float64)
        error = part.reward + gamma * part.discount() * value[1:] - value[:-1]
        if index == 0 or not part.follows(parts[index - 1]):
            pieces.append([])
        pieces[-1] += error.tolist()
    return [
        sum((gamma * gae_lambda) ** (k - t) * piece[k] for k in range(t, len(piece)))
        for piece in pieces
        for t in range(len(piece))
    ]


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), other=st.integers(0, 10**6), gamma=FACTORS, gae_lambda=FACTORS)
def test_advantages_are_the_discounted_errors_of_each_unbroken_sequence(
    seed: int, other: int, gamma: float, gae_lambda: float
) -> None:
    first, second = joined(experience(seed)), joined(experience(other))
    second = [replace(part, stream=part.stream._replace(lane=1)) for part in second]
    batch = sequences(first + second)
    wide = batch.reward.astype(np.float64), batch.discount.astype(np.float64)
    value = batch.observation["observation"][..., 0].astype(np.float64)
    found = generalized_advantage(*wide, batch.acted, value, gamma, gae_lambda)
    for row, parts in enumerate((first, second)):
        expected = naive_advantages(parts, gamma, gae_lambda)
        np.testing.assert_allclose(found[row][batch.acted[row]], expected, atol=1e-6)
    assert not found[~batch.acted].any()


def test_advantages_of_float32_are_float32() -> None:
    batch = sequences(experience(0))
    found = generalized_advantage(batch.reward, batch.discount, batch.acted, batch.reward, 0.99, 0.95)
    assert found.dtype == np.float32


def windows(reward: Array, span: Array, discount: Array, gamma: float) -> tuple[Array, Array]:
    batch = replace(transitions(problem(), len(reward)), reward=reward, span=span, discount=discount)
    return n_step_return(batch, gamma)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 6), gamma=FACTORS)
def test_a_window_is_worth_its_discounted_rewards_and_what_follows_them(seed: int, n: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    span, discount = rng.integers(1, n + 1, 9), rng.integers(0, 2, 9).astype(np.float32)
    reward = rng.normal(size=(9, n)).astype(np.float32) * (np.arange(n) < span[:, None])
    total, bootstrap = windows(reward, span, discount, gamma)
    for row in range(9):
        naive = sum(gamma**k * float(reward[row, k]) for k in range(span[row]))
        assert total[row] == pytest.approx(naive, abs=1e-5)
        assert bootstrap[row] == pytest.approx(gamma ** span[row] * discount[row], abs=1e-6)
    assert total.dtype == bootstrap.dtype == np.float32


def test_a_truncated_window_still_bootstraps_from_its_end() -> None:
    reward = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]], np.float32)
    total, bootstrap = windows(reward, np.array([2, 2]), np.array([1.0, 0.0], np.float32), 0.5)
    assert total.tolist() == [1.5, 1.5]
    assert bootstrap.tolist() == [0.25, 0.0]


def test_a_window_of_one_step_is_an_ordinary_transition() -> None:
    reward, discount = np.array([2.0, 3.0], np.float32), np.array([1.0, 0.0], np.float32)
    total, bootstrap = windows(reward, np.ones(2, np.int64), discount, 0.5)
    assert total.tolist() == [2.0, 3.0]
    assert bootstrap.tolist() == [0.5, 0.0]


def test_explained_variance_is_one_for_perfect_and_zero_for_constant_predictions() -> None:
    outcome = torch.tensor([1.0, 2.0, 3.0])
    assert explained_variance(outcome, outcome) == 1.0
    assert explained_variance(torch.full((3,), 7.0), outcome) == pytest.approx(0.0)
    assert explained_variance(-outcome, outcome) == pytest.approx(-3.0)
    assert np.isnan(explained_variance(outcome, torch.ones(3)))
