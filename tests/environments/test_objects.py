"""Environments by `module:Class`, without a registered id."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from rl4sys.environments import ENVIRONMENTS, MissingDependency, UnknownEnvironment, make_environment
from rl4sys.environments.objects import environment_name

OWN = """
import gymnasium
import numpy as np

class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size=1):
        self.size = size

def make(**settings):
    return Still(**settings)

number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current directory, which the path of this process does not have."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize("attribute", ["Still", "make"])
def test_a_class_or_function_of_a_module_makes_the_environment(module: str, attribute: str) -> None:
    environment = make_environment(f"{module}:{attribute}", {"size": 3, "max_episode_steps": 5})
    assert environment.unwrapped.size == 3  # type: ignore[attr-defined]
    assert isinstance(environment, gymnasium.wrappers.TimeLimit)


def test_what_a_module_does_not_have_is_refused(module: str) -> None:
    with pytest.raises(UnknownEnvironment, match="has no class or function 'Missing', and registers no environment"):
        make_environment(f"{module}:Missing", {})
    with pytest.raises(UnknownEnvironment, match="no class or function 'number'"):
        make_environment(f"{module}:number", {})
    with pytest.raises(MissingDependency, match="No module named 'no_such_module'"):
        make_environment("no_such_module:Still", {})


def test_an_environment_without_an_id_needs_lanes(module: str) -> None:
    with pytest.raises(ValueError, match="without a registered id needs backend=lanes"):
        ENVIRONMENTS.parse({"name": f"{module}:Still", "backend": "vector"})


def test_two_objects_of_one_name_get_two_names() -> None:
    def make() -> None: ...

    first = make

    def make() -> None: ...

    assert environment_name(first) == environment_name(first)
    assert environment_name(first) != environment_name(make)
