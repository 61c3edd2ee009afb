"""Returns of all episodes, and by version."""

from __future__ import annotations

import numpy as np
from tests.experience.segments import segment

from rl4sys.experience import Ending, Segment
from rl4sys.server.workers.episode_returns import EpisodeReturns


def part(version: int, reward: float, ending: Ending = Ending.TERMINATED, episode: int = 0) -> Segment:
    one = segment(policy_version=version, ending=ending, episode=episode)
    return segment(
        policy_version=version, ending=ending, episode=episode, reward=np.full(one.steps, reward / one.steps)
    )


def test_an_episode_counts_for_the_version_of_its_last_step() -> None:
    returns = EpisodeReturns()
    returns.note(part(1, 3.0))
    returns.note(part(1, 1.0, Ending.CONTINUES, episode=1))
    returns.note(part(2, 4.0, episode=1))
    assert [tuple(each) for each in returns.outcomes()] == [(1, 1, 3.0), (2, 1, 5.0)]


def test_all_episodes_of_a_version_are_counted_and_the_last_hundred_averaged() -> None:
    returns = EpisodeReturns()
    for number in range(150):
        returns.note(part(7, 0.0 if number < 50 else 2.0))
    assert returns.outcomes() == ((7, 150, 2.0),)


def test_the_newest_ten_versions_are_kept_and_a_late_episode_of_an_older_one_is_not() -> None:
    returns = EpisodeReturns()
    for version in (*range(12), 1):
        returns.note(part(version, 1.0))
    assert [each.version for each in returns.outcomes()] == list(range(2, 12))
    assert returns.count == 13


def test_outcomes_are_restored_and_a_state_without_them_is_accepted() -> None:
    returns, restored, earlier = EpisodeReturns(), EpisodeReturns(), EpisodeReturns()
    returns.note(part(3, 6.0))
    state = returns.state()
    restored.restore(state)
    earlier.restore({name: value for name, value in state.items() if name != "versions"})
    assert restored.outcomes() == ((3, 1, 6.0),)
    assert (earlier.count, earlier.mean_return, earlier.outcomes()) == (1, 6.0, ())
