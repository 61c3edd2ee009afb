"""Recorded episodes are saved, read and delivered as the algorithm expects them."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest

from incumbents import balance
from rl4sys.collection import (
    DatasetSource,
    RecordedEpisode,
    UnusableData,
    load_episodes,
    record_episodes,
    save_episodes,
)
from rl4sys.experience import ArraySpec, Ending
from rl4sys.policy import DiscreteAction, Head, PolicySpec, ProgramBuilder
from rl4sys.weights import Version

OBSERVATION = ArraySpec("observation", "float32", (4,))


def policy(action: DiscreteAction = DiscreteAction(2)) -> PolicySpec:  # noqa: B008
    builder = ProgramBuilder((OBSERVATION,))
    scores = builder.linear("observation", 2, "actor.action")
    return PolicySpec(action, builder.program(), Head("deterministic", (scores,)))


def episode(steps: int, *, is_terminated: bool = True) -> RecordedEpisode:
    seen = np.arange(steps + 1, dtype=np.float64)[:, None] * np.ones(4)
    return RecordedEpisode({"observation": seen}, np.arange(steps) % 2, np.ones(steps, np.float32), is_terminated)


def newest() -> Version:
    return Version(3, np.zeros(10, np.float32).tobytes())


def test_episodes_are_read_as_they_were_saved(tmp_path: Path) -> None:
    recorded = record_episodes(gymnasium.make("CartPole-v1"), balance, 3)
    save_episodes(tmp_path / "data.npz", recorded)
    for read, saved in zip(load_episodes(str(tmp_path / "data.npz")), recorded, strict=True):
        assert read.is_terminated == saved.is_terminated
        assert np.array_equal(read.observation["observation"], saved.observation["observation"])
        assert np.array_equal(read.action, saved.action)
        assert len(saved.observation["observation"]) == len(saved.reward) + 1


def test_a_source_delivers_every_episode_once_in_each_pass() -> None:
    source = DatasetSource([episode(40), episode(24, is_terminated=False)], policy(), 0)
    first, second = (source.collect(newest()).segments for _ in range(2))
    assert sorted(segment.steps for segment in first) == [24, 40] == sorted(segment.steps for segment in second)
    assert {segment.steps: segment.ending for segment in first} == {40: Ending.TERMINATED, 24: Ending.TRUNCATED}
    assert [segment.policy_version for segment in first] == [3, 3]
    assert first[0].observation["observation"].dtype == np.float32


def test_a_long_episode_continues_in_the_next_turn() -> None:
    source = DatasetSource([episode(100)], policy(), 0)
    (first,), (second, *_) = (source.collect(newest()).segments for _ in range(2))
    assert (first.ending, first.steps, second.ending, second.steps) == (Ending.CONTINUES, 64, Ending.TERMINATED, 36)
    assert second.follows(first)


def test_a_restored_source_continues_and_notices_other_data() -> None:
    data = [episode(50), episode(30)]
    source, other = DatasetSource(data, policy(), 5), DatasetSource(data, policy(), 5)
    source.collect(newest())
    assert list(other.restore(source.state())) == []
    expected, found = (each.collect(newest()).segments for each in (source, other))
    assert [(s.episode, s.start, s.steps) for s in expected] == [(s.episode, s.start, s.steps) for s in found]
    changed = DatasetSource(data[:1], policy(), 5)
    assert list(changed.restore(source.state())) == ["training.data has changed"]


def test_choices_that_do_not_begin_at_zero_are_counted_from_there() -> None:
    shifted = DatasetSource([episode(4)], policy(DiscreteAction(2, start=-1)), 0).collect(newest()).segments[0]
    assert shifted.action.tolist() == [1, 2, 1, 2]


def test_data_of_another_environment_is_refused() -> None:
    wrong = RecordedEpisode({"observation": np.zeros((3, 7))}, np.zeros(2, int), np.zeros(2, np.float32), True)
    with pytest.raises(UnusableData, match=r"does not fit this environment.*shape \(3, 7\); expected \(3, 4\)"):
        DatasetSource([wrong], policy(), 0)


def test_what_is_no_dataset_is_refused_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(UnusableData, match=r"there is no dataset 'nowhere'; expected an \.npz file"):
        load_episodes("nowhere")
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(UnusableData, match=r"cannot be read as \.npz"):
        load_episodes(str(tmp_path / "bad.npz"))
    np.savez(tmp_path / "part.npz", action=np.zeros(3))
    with pytest.raises(UnusableData, match=r"lacks the columns \['length', 'reward', 'terminated'\]"):
        load_episodes(str(tmp_path / "part.npz"))
