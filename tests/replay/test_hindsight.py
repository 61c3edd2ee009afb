from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from rl4sys.experience import Array, Ending, Transitions
from rl4sys.replay import BUFFERS, BufferContext, DistanceReward, HindsightBuffer, Ratio, UnsuitableBuffer

from .goal_segments import ASKED, goal_history, goals, hindsight
from .histories import through_json
from .segments import segment

STRATEGIES = pytest.mark.parametrize("strategy", ["future", "final", "episode"])


def drawn(buffer: HindsightBuffer) -> Transitions:
    return next(buffer.due())


def goal_of(batch: Transitions) -> Array:
    return batch.observation["desired_goal"][:, 0]


def filled(strategy: str, **settings: int) -> HindsightBuffer:
    """Two interleaved streams with an episode of 6 steps each."""
    buffer = hindsight(100, strategy, **settings)  # type: ignore[arg-type]
    for start in (0, 2, 4):
        for lane in (0, 1):
            buffer.add(goals(2, lane=lane, start=start, ending=Ending.TRUNCATED if start == 4 else Ending.CONTINUES))
    return buffer


@pytest.mark.parametrize(("relabel", "others"), [(0, 0), (1, 100), (4, 160), (7, 175)])
def test_the_configured_share_of_a_batch_is_relabelled(relabel: int, others: int) -> None:
    assert (goal_of(drawn(filled("future", relabel=relabel))) != ASKED).sum() == others


@STRATEGIES
def test_new_goals_were_reached_in_the_same_episode(strategy: str) -> None:
    batch = drawn(filled(strategy))
    other = goal_of(batch) != ASKED
    goal, clock = goal_of(batch)[other], batch.observation["clock"][other]
    begin = clock - clock % 100
    if strategy == "final":
        np.testing.assert_array_equal(goal, begin + 6)
    else:
        lowest = clock + 1 if strategy == "future" else begin + 1
        assert ((lowest <= goal) & (goal <= begin + 6)).all()
        assert set(goal - lowest) == set(range(6))


def test_all_future_goals_are_equally_likely() -> None:
    buffer = hindsight(10, relabel=9, batch_size=40_000)
    buffer.add(goals(4, ending=Ending.TERMINATED))
    batch = drawn(buffer)
    goal = goal_of(batch)[(goal_of(batch) != ASKED) & (batch.ids == 0)]
    times = np.bincount(goal.astype(int), minlength=5)[1:]
    expected = len(goal) / 4
    assert ((times - expected) ** 2 / expected).sum() < 16.3  # χ² with 3 degrees of freedom, once in a thousand


def test_both_observations_and_the_reward_use_the_same_goal() -> None:
    batch = drawn(filled("future"))
    np.testing.assert_array_equal(batch.observation["desired_goal"], batch.next_observation["desired_goal"])
    reached = batch.next_observation["achieved_goal"][:, 0] == goal_of(batch)
    np.testing.assert_array_equal(batch.reward, np.where(reached, 0.0, -1.0))
    assert 0 < reached.sum() < 200


def test_relabelling_changes_nothing_but_goal_and_reward() -> None:
    batch = drawn(filled("future"))
    np.testing.assert_array_equal(batch.observation["achieved_goal"][:, 0], batch.observation["clock"])
    np.testing.assert_array_equal(batch.next_observation["clock"], batch.observation["clock"] + 1)
    np.testing.assert_array_equal(batch.action, batch.observation["clock"] % 100)


def test_stored_rows_keep_their_goals() -> None:
    buffer = filled("future")
    drawn(buffer)
    assert (buffer.rows(0, 12)["observation/desired_goal"] == ASKED).all()


@STRATEGIES
def test_an_unfinished_episode_keeps_its_goals(strategy: str) -> None:
    buffer = hindsight(100, strategy)  # type: ignore[arg-type]
    buffer.add(goals(5))
    assert (goal_of(drawn(buffer)) == ASKED).all()
    buffer.add(goals(1, start=5, ending=Ending.TERMINATED))
    assert (goal_of(drawn(buffer)) != ASKED).sum() == 160


def test_goals_never_come_from_beyond_a_lost_segment() -> None:
    buffer = hindsight(100, "episode")
    buffer.add(goals(3))
    buffer.add(goals(3, start=50, ending=Ending.TRUNCATED))
    batch = drawn(buffer)
    other = goal_of(batch) != ASKED
    assert other.sum() == 160
    np.testing.assert_array_equal(goal_of(batch)[other] >= 50, batch.observation["clock"][other] >= 50)


def test_if_goals_do_not_end_episodes_the_recorded_endings_stay() -> None:
    buffer = hindsight(100)
    buffer.add(goals(3, ending=Ending.TERMINATED))
    buffer.add(goals(3, episode=1, ending=Ending.TRUNCATED))
    batch = drawn(buffer)
    np.testing.assert_array_equal(batch.discount, batch.ids != 2)


def test_if_goals_end_episodes_relabelling_moves_the_ending() -> None:
    """Episode 0 reaches its goal at the last step, episode 1 is truncated, episode 2 terminates without it."""
    buffer = hindsight(100, near=DistanceReward(0.1, terminates=True))
    reaching = goals(3, ending=Ending.TERMINATED)
    asked = {**reaching.observation, "desired_goal": np.full((4, 1), 3.0, np.float32)}
    buffer.add(replace(reaching, observation=asked, reward=np.array([-1, -1, 0], np.float32)))
    buffer.add(goals(3, episode=1, ending=Ending.TRUNCATED))
    buffer.add(goals(3, episode=2, ending=Ending.TERMINATED))
    batch = drawn(buffer)
    reached = batch.next_observation["achieved_goal"][:, 0] == goal_of(batch)
    assert (batch.discount[reached] == 0).all()
    np.testing.assert_array_equal(batch.discount[~reached] == 0, batch.ids[~reached] == 8)
    assert {2, 5, 8} <= set(batch.ids[reached])


@STRATEGIES
@pytest.mark.parametrize("capacity", [7, 23, 64, 5000])
def test_goals_come_from_transitions_of_the_episode_that_are_still_held(strategy: str, capacity: int) -> None:
    buffer = hindsight(capacity, strategy, batch_size=32)  # type: ignore[arg-type]
    relabelled = 0
    for item in goal_history(seed=capacity, segments=150):
        buffer.add(item)
        held = set((buffer.rows(buffer.first, buffer.total)["observation/clock"] + 1).tolist())
        for batch in buffer.due():
            other = goal_of(batch) != ASKED
            goal, clock = goal_of(batch)[other], batch.observation["clock"][other]
            assert set(goal.tolist()) <= held
            assert (goal // 100 == clock // 100).all()
            assert strategy == "episode" or (goal > clock).all()
            relabelled += int(other.sum())
    assert relabelled > 0


@STRATEGIES
@pytest.mark.parametrize("capacity", [23, 64, 5000])
def test_draws_after_a_restore_equal_those_without_one(strategy: str, capacity: int) -> None:
    settings = {"strategy": strategy, "batch_size": 32}
    buffer, saved, chunks = hindsight(capacity, **settings), 0, {}  # type: ignore[arg-type]
    segments = list(goal_history(seed=capacity, segments=160))
    for number, item in enumerate(segments[:80]):
        buffer.add(item)
        list(buffer.due())
        if number % 5 == 4:
            chunks[saved] = dict(buffer.rows(saved, buffer.total))
            saved = buffer.total
    other = hindsight(capacity, seed=1, **settings)  # type: ignore[arg-type]
    other.restore(through_json(buffer.state()))
    for first in reversed(chunks):
        other.load_rows(first, chunks[first])
    for item in segments[80:]:
        buffer.add(item)
        other.add(item)
        for ours, theirs in zip(buffer.due(), other.due(), strict=True):
            for field in fields(Transitions):
                np.testing.assert_equal(getattr(ours, field.name), getattr(theirs, field.name))
    assert other.counts == buffer.counts


def test_rewards_that_differ_from_the_goal_reward_are_counted_and_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    buffer = hindsight(100)
    odd = goals(3)
    buffer.add(replace(odd, reward=np.array([-1, 5, 5], np.float32)))
    buffer.add(goals(3, start=3))
    buffer.add(replace(goals(1, start=6), reward=np.array([7], np.float32)))
    assert buffer.counts["rewarded_otherwise"] == 3
    assert [record.getMessage() for record in caplog.records] == [
        "Step 1 of episode 0 has reward 5; buffer.goal_reward gives -1. Relabelled transitions get the latter: make "
        "sure that it matches the environment."
    ]


def test_observations_without_goals_are_refused() -> None:
    with pytest.raises(UnsuitableBuffer, match=r"got \['clock', 'state'\]\. Use an environment with goals"):
        hindsight(10).add(segment(2))


def test_n_step_windows_are_refused() -> None:
    config = BUFFERS.parse({"type": "hindsight", "goal_reward": {"type": "distance", "threshold": 0.1}})
    with pytest.raises(UnsuitableBuffer, match=r"not windows of 3 steps: set algorithm\.n_step=1"):
        config.build(Ratio(1, 0, 8), np.random.default_rng(0), 3, BufferContext())


def test_without_an_environment_the_goal_reward_must_be_configured() -> None:
    config = BUFFERS.parse({"type": "hindsight"})
    with pytest.raises(UnsuitableBuffer, match=r"Set buffer\.goal_reward=\{type: distance"):
        config.build(Ratio(1, 0, 8), np.random.default_rng(0), 1, BufferContext())
