from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.problems import problem, segment, sequences, transitions
from rl4sys.experience import ArraySpec, Ending, Segment
from rl4sys.learning import ObservationStatistics, RewardScale, RunningMoments
from rl4sys.state import StateMismatch, from_text, to_text


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(0, 7), max_size=6), offset=st.floats(-1e6, 1e6))
def test_statistics_of_parts_equal_those_of_the_whole(seed: int, sizes: list[int], offset: float) -> None:
    rng, moments = np.random.default_rng(seed), RunningMoments((2,))
    parts = [rng.normal(offset, 3.0, (size, 2)) for size in sizes]
    for part in parts:
        moments.add(part)
    whole = np.concatenate([np.zeros((0, 2)), *parts])
    assert moments.count == len(whole)
    if len(whole) > 1:
        np.testing.assert_allclose(moments.mean, whole.mean(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moments.variance, whole.var(axis=0), rtol=1e-6, atol=1e-9)


def test_statistics_of_float32_are_summed_in_float64() -> None:
    moments = RunningMoments(())
    rows = np.full(1000, 1e8, np.float32) + np.tile(np.float32([0, 8]), 500)
    moments.add(rows)
    assert float(moments.variance) == pytest.approx(16.0)


def test_the_variance_is_one_until_there_are_two_rows() -> None:
    moments = RunningMoments((2,))
    moments.add(np.ones((1, 2)))
    assert moments.variance.tolist() == [1.0, 1.0]


def test_only_float_observations_have_statistics() -> None:
    specs = [ArraySpec("queue", "float32", (3,)), ArraySpec("image", "uint8", (2, 2)), ArraySpec("mask", "bool", (2,))]
    assert set(ObservationStatistics(specs).standardization()) == {"queue"}


def test_the_observation_after_the_last_action_is_not_counted_twice() -> None:
    rng, statistics = np.random.default_rng(0), ObservationStatistics(problem().observation)
    parts = [segment(rng, problem(), 3), segment(rng, problem(), 4, start=3)]
    statistics.observe(parts)
    assert statistics.state()["observation"]["count"] == 7


def test_statistics_continue_from_a_saved_state() -> None:
    rng = np.random.default_rng(0)
    parts = [segment(rng, problem(), 5) for _ in range(4)]
    whole, first, resumed = (ObservationStatistics(problem().observation) for _ in range(3))
    whole.observe(parts[:2])
    whole.observe(parts[2:])
    first.observe(parts[:2])
    resumed.restore(from_text(to_text(first.state())))
    resumed.observe(parts[2:])
    assert to_text(resumed.state()) == to_text(whole.state())


def test_statistics_of_other_observations_are_refused() -> None:
    with pytest.raises(StateMismatch, match="missing"):
        ObservationStatistics(problem().observation).restore({"queue": {}})


def streams(seed: int) -> list[Segment]:
    """Segments of three lanes in random order; episodes end or continue."""
    rng = np.random.default_rng(seed)
    episode, start, parts = [0] * 3, [0] * 3, []
    for _ in range(12):
        lane, steps, ending = int(rng.integers(3)), int(rng.integers(1, 5)), Ending(int(rng.integers(3)))
        parts.append(segment(rng, problem(), steps, lane=lane, episode=episode[lane], start=start[lane], ending=ending))
        start[lane] += steps
        if ending is not Ending.CONTINUES:
            episode[lane], start[lane] = episode[lane] + 1, 0
    return parts


def naive_returns(parts: list[Segment], gamma: float) -> list[float]:
    """The discounted return of everything that came before in the episode, by its definition."""
    history: dict[tuple[int, int], list[float]] = {}
    found = []
    for part in parts:
        earlier = history.setdefault((part.stream.lane, part.episode), [])
        for reward in part.reward.tolist():
            earlier.append(reward)
            found.append(sum(gamma**back * r for back, r in enumerate(reversed(earlier))))
    return found


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 11), gamma=st.floats(0.0, 1.0))
def test_rewards_are_divided_by_the_standard_deviation_of_discounted_returns(seed: int, cut: int, gamma: float) -> None:
    parts, scale, resumed = streams(seed), RewardScale(gamma), RewardScale(gamma)
    scale.observe(parts[:cut])
    resumed.restore(from_text(to_text(scale.state())))
    resumed.observe(parts[cut:])
    deviation = np.std(naive_returns(parts, gamma))
    batch = sequences(parts)
    expected = np.clip(batch.reward / deviation, -10.0, 10.0)
    np.testing.assert_allclose(resumed.scaled(batch).reward, expected, rtol=1e-4, atol=1e-6)


def test_scaled_rewards_are_bounded_and_keep_their_type() -> None:
    scale, batch = RewardScale(0.9), transitions(problem())
    scale.observe([replace(segment(np.random.default_rng(0), problem(), 50), reward=np.full(50, 1e-3, np.float32))])
    found = scale.scaled(replace(batch, reward=np.array([[5.0, -5.0]] * 12, np.float32)))
    assert found.reward.tolist() == [[10.0, -10.0]] * 12
    assert found.reward.dtype == np.float32


def test_returns_of_finished_episodes_are_not_kept() -> None:
    scale = RewardScale(0.9)
    rng = np.random.default_rng(0)
    scale.observe([segment(rng, problem(), 3, lane=lane, ending=Ending.TERMINATED) for lane in range(50)])
    assert scale.state()["returns"] == []
