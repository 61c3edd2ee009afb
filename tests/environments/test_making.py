from __future__ import annotations

from typing import Literal

import gymnasium
import pytest
from gymnasium.error import DependencyNotInstalled

from rl4sys.environments import GymnasiumConfig, MissingDependency, UnknownEnvironment, make_gymnasium


def test_arguments_reach_the_environment() -> None:
    assert isinstance(make_gymnasium("LunarLander-v3", {"continuous": True}).action_space, gymnasium.spaces.Box)


def test_a_module_can_be_imported_by_the_name() -> None:
    assert make_gymnasium("rl4sys.environments:rl4sys/Chain-v0", {"n": 4}).observation_space.shape == (4,)


@pytest.mark.parametrize(("name", "meant"), [("cartpole", "CartPole-v1"), ("LunarLandr-v3", "LunarLander-v3")])
def test_a_misspelt_name_is_met_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(UnknownEnvironment, match=f"Did you mean .*{meant}"):
        make_gymnasium(name, {})


def test_a_name_like_no_other_is_met_with_the_list() -> None:
    with pytest.raises(UnknownEnvironment, match="pprint_registry"):
        make_gymnasium("Zqxj/Wvkpy", {})


@pytest.mark.filterwarnings("ignore:.*out of date:DeprecationWarning")
def test_an_old_version_is_met_with_the_one_to_use() -> None:
    with pytest.raises(UnknownEnvironment, match="LunarLander-v3"):
        make_gymnasium("LunarLander-v2", {})


def test_a_missing_module_is_named() -> None:
    with pytest.raises(MissingDependency, match="no_such_package"):
        make_gymnasium("no_such_package:Env-v0", {})


def test_a_missing_dependency_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_box2d(*_: object, **__: object) -> None:
        raise DependencyNotInstalled("Box2D is not installed")

    monkeypatch.setattr("gymnasium.envs.box2d.lunar_lander.LunarLander.__init__", without_box2d)
    with pytest.raises(MissingDependency, match=r"pip install 'gymnasium\[box2d\]'"):
        make_gymnasium("LunarLander-v3", {})


@pytest.mark.parametrize("backend", ["vector", "envpool"])
def test_a_limit_that_a_backend_would_not_keep_is_refused(backend: Literal["vector", "envpool"]) -> None:
    with pytest.raises(ValueError, match="max_episode_steps needs backend=lanes"):
        GymnasiumConfig(name="CartPole-v1", backend=backend, max_episode_steps=10)
    GymnasiumConfig(name="CartPole-v1", max_episode_steps=10)


def test_arguments_that_envpool_would_not_get_are_refused() -> None:
    with pytest.raises(ValueError, match="kwargs need backend=lanes or backend=vector"):
        GymnasiumConfig(name="CartPole-v1", backend="envpool", kwargs={"sutton_barto_reward": True})


def test_an_old_version_is_warned_of_once(recwarn: pytest.WarningsRecorder) -> None:
    for version in (0, 1):
        gymnasium.register(f"Aged-v{version}", "gymnasium.envs.classic_control:CartPoleEnv")
    for _ in range(3):
        make_gymnasium("Aged-v0", {}).close()
    (warned,) = [str(warning.message) for warning in recwarn if "out of date" in str(warning.message)]
    assert "Aged-v0" in warned


def test_an_environment_that_is_refused_says_so_in_one_line(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(MissingDependency, match="use HalfCheetah-v5"):
        make_gymnasium("HalfCheetah-v3", {})
    assert [str(warning.message) for warning in recwarn if "out of date" in str(warning.message)] == []
