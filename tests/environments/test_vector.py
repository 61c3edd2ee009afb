from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl4sys.environments import (
    Grade,
    GymnasiumConfig,
    Lanes,
    MissingDependency,
    VectorAdapter,
    envpool_lanes,
    random_action,
)
from rl4sys.experience import Ending
from rl4sys.policy import MASK

from .samples import SEEDS, Fixed, maker, play

MODES = pytest.mark.parametrize("mode", list(AutoresetMode))


def adapter(make: Callable[[], Any], mode: AutoresetMode, count: int = 2) -> VectorAdapter:
    return VectorAdapter(SyncVectorEnv([make] * count, autoreset_mode=mode), SEEDS)


def transitions(lanes: Lanes | VectorAdapter, lane: int, steps: int) -> list[Any]:
    """What lane went through, as (observation, action, reward, ending, next observation); resets left out."""
    rng = [np.random.default_rng(lane) for lane in range(lanes.count)]
    lanes.reset()
    acts, found = np.ones(lanes.count, bool), []
    action = np.zeros(lanes.count, np.int64)
    while len(found) < steps:
        before = {name: array[lane].tolist() for name, array in lanes.observation.items()}
        for other in np.flatnonzero(acts):
            one = {name: array[other : other + 1] for name, array in lanes.observation.items()}
            action[other] = random_action(lanes.spec.action, one, 1, rng[other])[0]
        step = lanes.step(action)
        after = step.final_observation.get(lane, {name: array[lane] for name, array in step.observation.items()})
        acted = np.ones(lanes.count, bool) if step.acted is None else step.acted
        ends_late = isinstance(lanes, VectorAdapter) and lanes._mode is AutoresetMode.NEXT_STEP
        acts = step.ending == 0 if ends_late else np.ones(lanes.count, bool)
        if acted[lane]:
            following = {name: array.tolist() for name, array in after.items()}
            found.append((before, action[lane].item(), step.reward[lane].item(), step.ending[lane].item(), following))
    return found


@MODES
@pytest.mark.parametrize("name", ["CartPole-v1", "rl4sys/Identity-v0"])
def test_every_autoreset_mode_gives_the_transitions_of_lanes(mode: AutoresetMode, name: str) -> None:
    make = maker(name, masked=True) if "Identity" in name else maker(name)
    for lane in range(2):
        expected = transitions(Lanes(make, 2, SEEDS, Grade.E1), lane, 60)
        assert transitions(adapter(make, mode), lane, 60) == expected


@MODES
def test_every_autoreset_mode_has_the_spec_of_lanes(mode: AutoresetMode) -> None:
    make = maker("rl4sys/Identity-v0", masked=True)
    assert adapter(make, mode).spec == Lanes(make, 2, SEEDS, Grade.E1).spec


@MODES
def test_every_autoreset_mode_counts_episodes_alike(mode: AutoresetMode) -> None:
    lanes = adapter(maker("rl4sys/Truncation-v0", horizon=3), mode)
    lanes.reset()
    play(lanes, 8)
    episodes = lanes.episodes()
    assert len(episodes) == 4
    assert {(e.return_, e.length, e.ending) for e in episodes} == {(3.0, 3, Ending.TRUNCATED)}


def test_the_call_after_an_end_is_a_reset_with_next_step_autoreset() -> None:
    lanes = adapter(maker("rl4sys/TwoStepDiscount-v0"), AutoresetMode.NEXT_STEP, count=1)
    lanes.reset()
    steps = play(lanes, 4)
    assert [step.acted is None or bool(step.acted[0]) for step in steps] == [True, True, False, True]
    assert [step.observation["observation"].item() for step in steps] == [1.0, 2.0, 0.0, 1.0]
    assert steps[1].final_observation[0]["observation"].item() == 2.0


class NothingLeftToChoose(Fixed):
    """Ends at once, and its last mask forbids everything."""

    def __init__(self) -> None:
        mask = {MASK: np.array([True, False])}
        super().__init__(spaces.Box(0, 1, (1,), np.float32), np.zeros(1, np.float32), info=mask)

    def step(self, action: Any) -> Any:
        observation, reward, *_ = super().step(action)
        return observation, reward, True, False, {MASK: np.array([False, False])}


@MODES
def test_an_episode_may_end_where_no_action_is_allowed(mode: AutoresetMode) -> None:
    lanes = adapter(NothingLeftToChoose, mode)
    lanes.reset()
    for step in play(lanes, 6):
        assert step.observation[MASK].any(axis=1).all()
        assert not any(final[MASK].any() for final in step.final_observation.values())
    assert len(lanes.episodes()) == (6 if mode is AutoresetMode.NEXT_STEP else 12)


def test_the_vector_backend_shows_the_masks_of_its_environments() -> None:
    config = GymnasiumConfig(name="rl4sys/Identity-v0", kwargs={"masked": True}, num_envs=2, backend="vector")
    lanes = config.lanes(SEEDS, 2, Grade.E3)
    expected = Lanes(maker("rl4sys/Identity-v0", masked=True), 2, SEEDS, Grade.E1)
    assert np.array_equal(lanes.reset()[MASK], expected.reset()[MASK])
    assert not lanes.observation[MASK].all()
    for step in play(lanes, 10):
        assert step.observation[MASK].any(axis=1).all()


def test_continuous_actions_are_clipped_for_vector_environments_too() -> None:
    lanes = adapter(maker("Pendulum-v1"), AutoresetMode.SAME_STEP)
    first = lanes.reset()["observation"].copy()
    wild = lanes.step(np.full((2, 1), 50.0, np.float32)).observation["observation"].copy()
    other = adapter(maker("Pendulum-v1"), AutoresetMode.SAME_STEP)
    assert np.array_equal(other.reset()["observation"], first)
    assert np.array_equal(other.step(np.full((2, 1), 2.0, np.float32)).observation["observation"], wild)


@MODES
def test_restoring_a_vector_environment_starts_fresh_episodes_and_says_so(mode: AutoresetMode) -> None:
    original, other = (adapter(maker("CartPole-v1"), mode) for _ in range(2))
    first = original.reset()["observation"].copy()
    play(original, 30)
    observation = other.restore(original.state())["observation"]
    assert other.restarted == [0, 1]
    assert "E3" in other.inexact[1]
    assert not np.array_equal(observation, first)
    assert other.episodes() == original.episodes()
    play(other, 30)


def test_a_vector_environment_that_does_not_say_how_it_resets_is_refused() -> None:
    vector = SyncVectorEnv([maker("CartPole-v1")])
    vector.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode"):
        VectorAdapter(vector, SEEDS)


@pytest.mark.skipif(importlib.util.find_spec("envpool") is not None, reason="envpool is installed")
def test_a_missing_envpool_names_the_extra() -> None:
    with pytest.raises(MissingDependency, match=r"rl4sys\[envpool\]"):
        envpool_lanes("CartPole-v1", 2, SEEDS)


@pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="envpool is not installed")
@pytest.mark.filterwarnings("ignore:.*precision lowered:UserWarning")
def test_envpool_lanes_play() -> None:
    lanes = envpool_lanes("CartPole-v1", 2, SEEDS)
    lanes.reset()
    play(lanes, 100)
    assert {episode.ending for episode in lanes.episodes()} == {Ending.TERMINATED}
