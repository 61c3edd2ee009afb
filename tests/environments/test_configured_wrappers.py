from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rl4sys.config import ConfigError, parse
from rl4sys.environments import Grade, GymnasiumConfig, Lanes
from rl4sys.seeding import Seeds


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    """Multiplies rewards."""

    def __init__(self, environment: gymnasium.Env[Any, Any], factor: float = 2.0) -> None:
        super().__init__(environment)
        self._factor = factor

    def reward(self, reward: Any) -> float:
        return self._factor * float(reward)


OWN = f"{__name__}:Doubled"


def config(**settings: Any) -> GymnasiumConfig:
    return parse(GymnasiumConfig, {"name": "CartPole-v1", **settings})


def lanes(environment: GymnasiumConfig, count: int = 2) -> Any:
    return environment.lanes(Seeds(0), count, Grade.E1)


def test_wrappers_are_applied_in_order_with_their_arguments() -> None:
    wrapped = config(wrappers=[{"name": OWN, "kwargs": {"factor": 3.0}}, OWN, "TimeAwareObservation"])
    made = lanes(wrapped)
    assert made.reset()["observation"].shape == (2, 5)
    assert made.step(np.zeros(2, np.int64)).reward.tolist() == [6.0, 6.0]


def test_a_wrapped_environment_keeps_its_exactness() -> None:
    assert config(wrappers=[OWN]).grade(Seeds(0)) is Grade.E1
    assert config(wrappers=[{"name": "FrameStackObservation", "kwargs": {"stack_size": 2}}]).grade(Seeds(0)) is Grade.E1


@pytest.mark.parametrize(
    ("wrapper", "said"),
    [
        ("NormalizeObservation", "set normalize_obs"),
        ("RescaleActon", "did you mean 'RescaleAction'"),
        (f"{__name__}:Missing", "has no class or function 'Missing'"),
        ({"name": "RescaleAction", "kwargs": {"smallest": 1}}, "cannot wrap with {'smallest': 1}"),
    ],
)
def test_a_wrapper_that_does_not_fit_is_explained(wrapper: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        lanes(config(wrappers=[wrapper]))


def test_vectors_are_stacked_and_an_episode_begins_with_copies_of_its_first() -> None:
    made = lanes(config(frame_stack=3), count=1)
    first = made.reset()["observation"].copy()
    second = made.step(np.zeros(1, np.int64)).observation["observation"]
    assert first.shape == (1, 12)
    assert first[0, :4].tolist() == first[0, 8:].tolist()
    assert second[0, :8].tolist() == first[0, 4:].tolist()


def test_an_environment_with_stacked_vectors_resumes_exactly() -> None:
    assert config(frame_stack=2).grade(Seeds(0)) is Grade.E1


def test_evaluations_may_have_settings_of_their_own() -> None:
    environment = config(max_episode_steps=10, evaluation={"max_episode_steps": 5})
    assert environment.for_evaluation().max_episode_steps == 5
    assert not environment.for_evaluation().evaluation
    with pytest.raises(ConfigError, match="max_episode_step"):
        config(evaluation={"max_episode_step": 5})


def test_evaluations_keep_the_arguments_that_they_do_not_change() -> None:
    environment = config(kwargs={"sutton_barto_reward": True}, evaluation={"kwargs": {"render_mode": None}})
    assert environment.for_evaluation().kwargs == {"sutton_barto_reward": True, "render_mode": None}


def test_another_environment_of_evaluations_has_arguments_of_its_own() -> None:
    other = {"name": "Acrobot-v1", "kwargs": {"render_mode": None}}
    environment = config(kwargs={"sutton_barto_reward": True}, evaluation=other)
    assert environment.for_evaluation().kwargs == {"render_mode": None}


@pytest.mark.slow
def test_environments_step_in_processes_of_their_own_and_reset_right() -> None:
    made = lanes(config(backend="async", wrappers=["TimeAwareObservation"], max_episode_steps=3))
    try:
        made.reset()
        steps = [made.step(np.zeros(2, np.int64)) for _ in range(5)]
        assert [step.acted is None for step in steps] == [True, True, True, False, True]
        assert [episode.length for episode in made.episodes()] == [3, 3]
    finally:
        made.close()


def test_lanes_are_what_the_default_backend_makes() -> None:
    assert isinstance(lanes(config()), Lanes)
