"""Rendered environments: on a screen, or as frames."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np

from rl4sys.environments import AtariConfig, EnvironmentConfig, Grade, GymnasiumConfig, Lanes
from rl4sys.environments.mujoco_setup import is_mujoco
from rl4sys.experience import Array
from rl4sys.seeding import Seeds

RenderMode: TypeAlias = Literal["human", "rgb_array"]
_USUAL_FRAMES_PER_SECOND = 30.0
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")
_ADVICE: Mapping[RenderMode, str] = {
    "human": "Record a video instead: --video out.mp4",
    "rgb_array": "Simulate it without --video, or give the environment a render mode 'rgb_array'.",
}


class CannotRender(RuntimeError):
    """The environment cannot be shown in the way that was asked for."""


class RenderedEnvironment:
    """Makes an environment that renders, and knows its frames per second."""

    def __init__(self, config: EnvironmentConfig, mode: RenderMode) -> None:
        """Look whether the environment offers the mode, before anything is spent on acting in it."""
        if mode == "human" and not has_screen() and "SDL_VIDEODRIVER" not in os.environ:
            raise CannotRender(
                "There is no screen to render on (neither DISPLAY nor WAYLAND_DISPLAY is set). "
                "Record a video instead: --video out.mp4"
            )
        self._mode = mode
        plain = _one_by_one(config)
        self._config = _drawing(plain, mode)
        environment = plain.maker()()
        metadata, opens_windows = environment.metadata, is_mujoco(environment.unwrapped)
        environment.close()
        if mode == "human" and opens_windows:
            _require_window()
        offered = list(metadata.get("render_modes") or ())
        # With pixels as observations the environment renders those, and nothing else.
        shows_pixels = isinstance(plain, GymnasiumConfig) and plain.pixels is not None
        if mode not in offered or (mode == "human" and shows_pixels):
            raise CannotRender(
                f"Environment '{config.name}' cannot be rendered as '{mode}'; its render modes are {offered}. "
                f"{_ADVICE[mode]}"
            )
        rate = float(metadata.get("render_fps") or _USUAL_FRAMES_PER_SECOND)
        # An Atari game counts the frames that it skips by itself.
        self.frames_per_second = rate / (plain.frame_skip if isinstance(plain, GymnasiumConfig) else 1)

    def lanes(self, seeds: Seeds, show: Callable[[Array], None] | None = None) -> Lanes:
        """One environment; `show` gets a frame [height, width, 3] of the beginning and one after every step."""
        make = self._config.maker()
        if self._mode == "human" or show is None:
            return Lanes(make, 1, seeds, Grade.E3)
        return Lanes(lambda: _Filmed(make(), show), 1, seeds, Grade.E3)


def has_screen() -> bool:
    """Whether there is a display to open a window on."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in _SCREENS)


def _require_window() -> None:
    """Refuse a screen that cannot be opened: MuJoCo's windows would end the process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        is_open = importlib.import_module("glfw").init()
    if not is_open:
        screen = ", ".join(f"{name}={os.environ[name]}" for name in _SCREENS if os.environ.get(name))
        raise CannotRender(f"The screen that is named ({screen or 'none'}) cannot be opened. {_ADVICE['human']}")


def _drawing(config: GymnasiumConfig | AtariConfig, mode: RenderMode) -> GymnasiumConfig | AtariConfig:
    """The same environment, made to draw; Atari games draw always."""
    if isinstance(config, AtariConfig):
        return config
    return config.model_copy(update={"kwargs": {**config.kwargs, "render_mode": mode}})


def _one_by_one(config: EnvironmentConfig) -> GymnasiumConfig | AtariConfig:
    """The same environment, stepped as plain Gymnasium environments are: only these can be drawn."""
    if isinstance(config, AtariConfig):
        return config
    if not isinstance(config, GymnasiumConfig):
        raise CannotRender(
            f"Environment '{config.name}' is not made by Gymnasium ({type(config).__name__}), so it has no render "
            f"modes. Simulate it without --render and --video."
        )
    return config.model_copy(update={"backend": "lanes"})


class _Filmed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows a frame after every step, and one of the beginning before the first."""

    def __init__(self, environment: gymnasium.Env[Any, Any], show: Callable[[Array], None]) -> None:
        super().__init__(environment)
        self._show = show
        self._has_begun = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, which is shown only if it is acted in."""
        self._has_begun = False
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Act, and show what comes of it."""
        if not self._has_begun:
            self._has_begun = True
            if not has_screen():
                # pygame draws into memory then; MuJoCo was set up when the environment was made.
                os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
            self._show(self._frame())
        outcome = super().step(action)
        self._show(self._frame())
        return outcome

    def _frame(self) -> Array:
        try:
            frame = self.render()
        except Exception as error:  # whatever a driver or a stranger's environment raises
            raise CannotRender(
                f"The environment could not be drawn: {type(error).__name__}: {error}. Without a screen, pygame draws "
                f"with SDL_VIDEODRIVER=dummy, and MuJoCo with MUJOCO_GL=egl (apt install libegl1) or MUJOCO_GL=osmesa "
                f"(apt install libosmesa6)."
            ) from error
        if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            found = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise CannotRender(f"The environment drew {found}; expected uint8[height, width, 3] in mode 'rgb_array'.")
        return frame
