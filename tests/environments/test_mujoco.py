from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl4sys.environments import Grade, GymnasiumConfig, Lanes, RenderingUnavailable, make_environment, mujoco_setup
from rl4sys.environments.mujoco_state import MujocoState
from rl4sys.experience import Ending
from rl4sys.state import StateMismatch

from .samples import SEEDS, fingerprint, play, resumed

mujoco = pytest.importorskip("mujoco")

ROBOTS = (
    "Ant",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "InvertedPendulum",
    "Pusher",
    "Reacher",
    "Swimmer",
    "Walker2d",
)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ROBOTS)
def test_the_probe_finds_that_every_robot_saves_itself(robot: str) -> None:
    assert GymnasiumConfig(name=f"gym/{robot}/v5").grade(SEEDS) is Grade.E0


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_resumes_to_the_bit_from_any_step(robot: str) -> None:
    before = int(np.random.default_rng(len(robot)).integers(1, 60))
    lanes, is_same = resumed(GymnasiumConfig(name=f"gym/{robot}/v5").maker(), Grade.E0, before, after=30)
    assert is_same
    assert lanes.inexact == []


def test_the_integration_state_alone_would_not_do_for_the_ant() -> None:
    """Its reward is measured from a place that was computed before the last step of the simulation."""
    original, other = (make_environment("Ant-v5", {}) for _ in range(2))
    for environment in (original, other):
        environment.reset(seed=1)
    for _ in range(20):
        original.step(np.full(8, 0.5))
    one, two = (environment.unwrapped for environment in (original, other))
    kind = int(mujoco.mjtState.mjSTATE_INTEGRATION)
    state = np.zeros(mujoco.mj_stateSize(one.model, kind))
    mujoco.mj_getState(one.model, one.data, state, kind)
    mujoco.mj_setState(two.model, two.data, state, kind)
    mujoco.mj_forward(two.model, two.data)
    assert original.step(np.zeros(8))[1] != other.step(np.zeros(8))[1]


def test_the_state_of_another_robot_is_refused() -> None:
    ant, hopper = (make_environment(name, {}).unwrapped for name in ("Ant-v5", "Hopper-v5"))
    with pytest.raises(StateMismatch, match="does not fit its model"):
        MujocoState(hopper.model, hopper.data).set_state(MujocoState(ant.model, ant.data).get_state())


def test_robots_are_truncated_by_the_clock_and_terminated_by_a_fall() -> None:
    endings = {}
    for robot in ("HalfCheetah", "Hopper"):
        lanes = GymnasiumConfig(name=f"gym/{robot}/v5", max_episode_steps=150).lanes(SEEDS, 1, Grade.E0)
        lanes.reset()
        play(lanes, 150)
        endings[robot] = {episode.ending for episode in lanes.episodes()}
    assert endings == {"HalfCheetah": {Ending.TRUNCATED}, "Hopper": {Ending.TERMINATED}}


def test_warnings_go_to_the_log_and_to_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.DEBUG, "rl4sys.environments"):
        make_environment("HalfCheetah-v5", {})
        mujoco.get_mju_user_warning()("Something is huge")
    assert list(tmp_path.iterdir()) == []
    levels = {record.getMessage()[:17]: record.levelno for record in caplog.records}
    assert levels["MuJoCo: compiler "] == logging.DEBUG
    assert levels["MuJoCo: Something"] == logging.WARNING


def drawn(name: str, **pixels: Any) -> GymnasiumConfig:
    return GymnasiumConfig.model_validate({"name": name, "pixels": {"size": 24, **pixels}})


@pytest.mark.slow
def test_pictures_of_several_lanes_do_not_disturb_each_other() -> None:
    config = drawn("HalfCheetah-v5")
    alone = config.lanes(SEEDS, 1, Grade.E0)
    expected = [alone.reset()["pixels"][0].copy(), *(step.observation["pixels"][0] for step in play(alone, 3))]
    together, passing = config.lanes(SEEDS, 2, Grade.E0), config.lanes(SEEDS, 1, Grade.E0)
    seen = [together.reset()["pixels"][0].copy()]
    passing.reset()
    passing.close()
    rng = np.random.default_rng(0)
    for _ in range(3):
        action = np.repeat(rng.uniform(-1, 1, (1, 6)).astype(np.float32), 2, axis=0)
        seen.append(together.step(action).observation["pixels"][0].copy())
    assert all(map(np.array_equal, seen, expected))
    assert seen[0].std() > 10.0


@pytest.mark.slow
def test_images_resume_to_the_bit() -> None:
    original, other = (Lanes(drawn("Ant-v5", keep_state=True).maker(), 1, SEEDS, Grade.E0) for _ in range(2))
    original.reset()
    play(original, 5)
    other.restore(original.state())
    assert other.inexact == []
    assert fingerprint(play(original, 5, seed=1)) == fingerprint(play(other, 5, seed=1))


def test_a_camera_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no camera 'above'; choose one of \['track'\]"):
        drawn("HalfCheetah-v5", camera="above").maker()()


def test_drawing_without_a_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "disabled")
    with pytest.raises(RenderingUnavailable, match="apt install libegl1"):
        mujoco_setup.require_rendering()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere glfw needs no display server")
def test_a_driver_for_screens_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    for screen in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(screen, raising=False)
    with pytest.raises(RenderingUnavailable, match="MUJOCO_GL is 'glfw', and there is no screen"):
        mujoco_setup.require_rendering()


def test_a_driver_that_keeps_a_package_from_being_imported_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "needs_a_driver.py").write_text("None.glGetError")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(RenderingUnavailable, match="needs_a_driver cannot be imported while MUJOCO_GL is 'osmesa'"):
        mujoco_setup.import_drawing("needs_a_driver")
    monkeypatch.delenv("MUJOCO_GL")
    with pytest.raises(AttributeError, match="glGetError"):
        mujoco_setup.import_drawing("needs_a_driver")


@pytest.mark.parametrize("ways", [("egl", "osmesa"), ("osmesa",), ()])
def test_without_a_screen_the_first_way_that_works_is_chosen(
    ways: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)

    class Module:
        class GLContext:
            def __init__(self, *size: int) -> None: ...
            def free(self) -> None: ...

    def find(name: str) -> Any:
        if name.removeprefix("mujoco.") not in ways:
            raise ImportError(name)
        return Module

    monkeypatch.setattr("importlib.import_module", find)
    assert mujoco_setup.choose_renderer() == (ways[0] if ways else "disabled")


@pytest.mark.parametrize(("screen", "chosen"), [({"DISPLAY": ":0"}, "glfw"), ({"MUJOCO_GL": "osmesa"}, "osmesa")])
def test_a_screen_or_a_choice_is_respected(
    screen: dict[str, str], chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    for variable, value in screen.items():
        monkeypatch.setenv(variable, value)
    assert mujoco_setup.choose_renderer() == chosen


def test_simulating_without_pictures_touches_no_driver() -> None:
    code = (
        "import os, sys; from rl4sys.environments import make_environment; "
        "make_environment('HalfCheetah-v5', {}).reset(seed=0); "
        "print('MUJOCO_GL' in os.environ, 'mujoco.egl' in sys.modules)"
    )
    clean = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
