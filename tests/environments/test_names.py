from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from rl4sys.environments import (
    ENVIRONMENTS,
    GymnasiumConfig,
    MissingDependency,
    UnknownEnvironment,
    canonical_name,
    make_environment,
)
from rl4sys.environments.names import suggestion


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("CartPole-v1", "CartPole-v1"),
        ("gym/CartPole/v1", "CartPole-v1"),
        ("gym/CartPole-v1", "CartPole-v1"),
        ("gym/rl4sys/PointReach/v0", "rl4sys/PointReach-v0"),
        ("rl4sys/PointReach/v0", "rl4sys/PointReach-v0"),
        ("ALE/Pong-v5", "ALE/Pong-v5"),
        ("package:Own/v3", "package:Own-v3"),
        ("dm_control/cheetah/run", "dm_control/cheetah/run"),
    ],
)
def test_every_spelling_has_one_meaning(given: str, meant: str) -> None:
    assert canonical_name(given) == meant
    assert canonical_name(meant) == meant


def test_a_config_keeps_the_one_spelling_so_that_equal_experiments_are_equal() -> None:
    spellings = ("CartPole-v1", "gym/CartPole-v1", "gym/CartPole/v1")
    assert len({ENVIRONMENTS.parse({"name": name}).model_dump_json() for name in spellings}) == 1


def test_an_environment_is_made_by_universe_domain_and_task() -> None:
    environment = make_environment("gym/Pendulum/v1", {})
    assert environment.spec is not None
    assert environment.spec.id == "Pendulum-v1"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("gym/CartPol/v1", "CartPole-v1"), ("gym/Pendulum/v9", "Pendulum"), ("rl4sys/PointReech-v0", "PointReach-v0")],
)
def test_a_misspelt_name_is_met_with_near_ones(name: str, meant: str) -> None:
    with pytest.raises(UnknownEnvironment, match=meant):
        make_environment(name, {})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("dm_control/cheeta/run", "dm_control/cheetah/run"),
        ("dm_control/walker-walk", "dm_control/walker/walk"),
        ("dmc/cheetah/run", "dm_control/cheetah/run"),
        ("dm_control/cheetah", "dm_control/cheetah/run"),
    ],
)
def test_a_misspelt_task_is_met_with_near_ones(name: str, meant: str) -> None:
    pytest.importorskip("dm_control")
    with pytest.raises(UnknownEnvironment, match=f"Did you mean .*{meant}"):
        make_environment(name, {})


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("HalfCheetah-v5", "mujoco", "mujoco"), ("dm_control/cheetah/run", "dm_control", "dmc")],
)
def test_a_missing_simulator_names_the_extra(name: str, package: str, extra: str, without: Any) -> None:
    without(package)
    with pytest.raises(MissingDependency, match=rf"pip install 'rl4sys\[{extra}\]'"):
        make_environment(name, {})


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Behaves as if a package were not installed."""
    found = importlib.util.find_spec

    def hide(package: str) -> None:
        import sys

        for module in [name for name in list(sys.modules) if f".{package}." in f".{name}."]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *rest: None if name == package else found(name, *rest)
        )

    return hide


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"name": "dm_control/cheetah/run", "backend": "vector"}, "dm_control need backend=lanes"),
        ({"name": "CartPole-v1", "backend": "vector", "frame_skip": 2}, "frame_skip"),
        ({"name": "CartPole-v1", "backend": "envpool", "pixels": {}}, "pixels"),
        ({"name": "CartPole-v1", "flatten_obs": True, "pixels": {}}, "mix images and numbers"),
        ({"name": "CartPole-v1", "pixels": {"size": 2}}, "size"),
        ({"name": "CartPole-v1", "frame_skip": 0}, "frame_skip"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        GymnasiumConfig(**settings)


def test_a_game_as_other_libraries_name_it_is_met_with_our_name() -> None:
    assert suggestion("PongNoFrameskip-v4") == "Did you mean atari/Pong?"
