from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl4sys.environments import Grade, Lanes, probe
from rl4sys.state import StateMismatch

from .samples import SEEDS, SavedWalk, Walk, fingerprint, maker, play, resumed


def plain(value: Any) -> Any:
    """As a checkpoint would keep it: arrays aside, everything else through JSON."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("name", "kwargs", "grade"),
    [
        ("CartPole-v1", {}, Grade.E1),
        ("Pendulum-v1", {}, Grade.E1),
        ("Acrobot-v1", {}, Grade.E1),
        ("MountainCar-v0", {}, Grade.E1),
        ("LunarLander-v3", {}, Grade.E1),
        ("LunarLander-v3", {"continuous": True}, Grade.E1),
        ("BipedalWalker-v3", {}, Grade.E2),
    ],
)
def test_the_probe_grades_known_environments(name: str, kwargs: dict[str, Any], grade: Grade) -> None:
    assert probe(maker(name, **kwargs), SEEDS) is grade


def test_the_probe_grades_an_environment_with_a_state_of_its_own() -> None:
    assert probe(SavedWalk, SEEDS) is Grade.E0


def test_the_probe_does_not_believe_a_state_that_is_not_restored() -> None:
    assert probe(lambda: SavedWalk(forgetful=True), SEEDS) is Grade.E1


class WalkInASet(SavedWalk):
    """A state that works in memory and cannot be written to a file."""

    def get_state(self) -> Any:
        return {"position": {self.position}}

    def set_state(self, state: Any) -> None:
        (self.position,) = state["position"]


class WalkThatCannotTell(SavedWalk):
    """A state that is announced and not there."""

    def get_state(self) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("make", [WalkInASet, WalkThatCannotTell])
def test_the_probe_does_not_believe_a_state_that_no_file_can_hold(make: type[SavedWalk]) -> None:
    assert probe(make, SEEDS) is Grade.E1


def test_the_probe_sees_noise_that_no_seed_governs() -> None:
    assert probe(lambda: Walk(noise=True), SEEDS) is Grade.E3


def test_the_probe_respects_action_masks() -> None:
    assert probe(maker("rl4sys/Identity-v0", masked=True), SEEDS) is Grade.E1


@pytest.mark.parametrize(
    ("name", "grade"),
    [("CartPole-v1", Grade.E1), ("LunarLander-v3", Grade.E1), ("BipedalWalker-v3", Grade.E2)],
)
def test_a_replayed_run_resumes_to_the_bit(name: str, grade: Grade) -> None:
    lanes, is_same = resumed(maker(name), grade)
    assert is_same
    assert lanes.inexact == []
    assert lanes.restarted == []


def test_a_saved_environment_resumes_to_the_bit_with_its_time_limit() -> None:
    lanes, is_same = resumed(lambda: gymnasium.wrappers.TimeLimit(SavedWalk(), 9), Grade.E0, before=25)
    assert is_same
    assert lanes.inexact == []


def test_a_wrapper_with_unknown_memory_is_replayed_instead() -> None:
    assert probe(lambda: gymnasium.wrappers.FrameStackObservation(SavedWalk(), 2), SEEDS) is Grade.E1


def test_lanes_resume_twice_within_an_episode() -> None:
    once, _ = resumed(maker("Pendulum-v1"), Grade.E1, before=20, after=10)
    again = Lanes(maker("Pendulum-v1"), 3, SEEDS, Grade.E1)
    again.restore(once.state())
    assert again.inexact == []
    assert fingerprint(play(once, 50)) == fingerprint(play(again, 50))


def test_the_state_is_json_and_arrays_and_survives_both() -> None:
    original, other = (Lanes(maker("LunarLander-v3"), 2, SEEDS, Grade.E1) for _ in range(2))
    original.reset()
    play(original, 90)
    observation = other.restore(plain(original.state()))["observation"]
    assert other.inexact == []
    assert np.array_equal(observation, original.observation["observation"])


def test_finished_episodes_and_running_returns_are_part_of_the_state() -> None:
    original, other = (Lanes(maker("CartPole-v1"), 2, SEEDS, Grade.E1) for _ in range(2))
    original.reset()
    play(original, 60)
    other.restore(original.state())
    play(original, 30)
    play(other, 30)
    assert original.episodes() == other.episodes()


def test_an_unrepeatable_lane_starts_afresh_and_says_so() -> None:
    lanes, _ = resumed(lambda: Walk(noise=True), Grade.E3, before=2, after=1)
    assert lanes.restarted == [0, 1, 2]
    assert "lane 0: continuing, not exact" in lanes.inexact[0]
    assert "E3" in lanes.inexact[0]


def test_a_replay_that_arrives_elsewhere_is_reported_not_raised() -> None:
    original, other = (Lanes(lambda: Walk(noise=True), 1, SEEDS, Grade.E1) for _ in range(2))
    original.reset()
    play(original, 2)
    observation = other.restore(original.state())["observation"]
    assert other.restarted == [0]
    assert "differs" in other.inexact[0]
    assert observation.tolist() == [[0.0]]


@pytest.mark.parametrize(("part", "reason"), [("returns", "return"), ("starts", "return|differs|ended")])
def test_a_falsified_state_is_reported(part: str, reason: str) -> None:
    original, other = (Lanes(maker("CartPole-v1"), 1, SEEDS, Grade.E1) for _ in range(2))
    original.reset()
    play(original, 5)
    state: Any = original.state()
    state["statistics"][part][0] += 1
    state["lanes"]["0"]["actions"] = state["lanes"]["0"]["actions"][: 5 if part == "returns" else 4]
    other.restore(state)
    assert len(other.inexact) == 1
    assert any(word in other.inexact[0] for word in reason.split("|"))


def test_an_environment_that_fails_during_the_replay_starts_afresh() -> None:
    original, other = (Lanes(Walk, 1, SEEDS, Grade.E1) for _ in range(2))
    original.reset()
    state: Any = original.state()
    state["lanes"]["0"]["origin"] = {"bit_generator": "Unknown"}
    other.restore(state)
    assert other.restarted == [0]


def test_another_number_of_lanes_or_another_grade_is_refused() -> None:
    original = Lanes(Walk, 1, SEEDS, Grade.E1)
    original.reset()
    for other in (Lanes(Walk, 2, SEEDS, Grade.E1), Lanes(Walk, 1, SEEDS, Grade.E3)):
        with pytest.raises(StateMismatch, match="Resume with"):
            other.restore(original.state())
