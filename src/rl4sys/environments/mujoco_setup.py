"""What MuJoCo needs to know about the machine: how to draw without a screen, and where its warnings go."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import warnings
from types import ModuleType

_LOG = logging.getLogger(__name__)
_VARIABLE = "MUJOCO_GL"
"""The environment variable by which MuJoCo, Gymnasium and dm_control choose how to draw."""
_WAYS = ("glfw", "egl", "osmesa")


class RenderingUnavailable(RuntimeError):
    """Images are requested where nothing can render them."""


def require_rendering() -> str:
    """How MuJoCo can draw here: glfw where there is a screen, else egl or osmesa."""
    way = choose_renderer()
    lacks_screen = way == "glfw" and sys.platform.startswith("linux") and not _has_screen()
    if way not in _WAYS or lacks_screen:
        reason = ", and there is no screen" if lacks_screen else ""
        raise RenderingUnavailable(
            f"MuJoCo cannot draw here: {_VARIABLE} is '{way}'{reason}. Without a screen install EGL "
            f"(apt install libegl1) and set {_VARIABLE}=egl, or OSMesa (apt install libosmesa6) and set "
            f"{_VARIABLE}=osmesa; or leave images and videos out."
        )
    return way


def choose_renderer() -> str:
    """The way to draw, chosen once for this process and its children, unless the user chose one."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = "glfw" if _has_screen() else _without_screen()
    return os.environ[_VARIABLE]


def hear_warnings() -> None:
    """Send MuJoCo's warnings to the log of this process; by itself it writes a file where the process runs."""
    import_drawing("mujoco").set_mju_user_warning(_warn)


def import_drawing(name: str) -> ModuleType:
    """A package that loads the driver it may draw with as soon as it is imported, whether anything is drawn or not."""
    try:
        with warnings.catch_warnings():
            # A driver that finds no screen warns; that matters only when something is to be drawn.
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except Exception as error:  # as many kinds as there are drivers that can be missing
        way = os.environ.get(_VARIABLE)
        if way is None or isinstance(error, ModuleNotFoundError):
            raise
        raise RenderingUnavailable(
            f"{name} cannot be imported while {_VARIABLE} is '{way}' ({type(error).__name__}: {error}). Unset "
            f"{_VARIABLE}, so that a way to draw is looked for, or install what it names: EGL (apt install libegl1) or "
            f"OSMesa (apt install libosmesa6)."
        ) from error


def is_mujoco(environment: object) -> bool:
    """Whether this is an unwrapped MuJoCo environment of Gymnasium's kind, with a `model` and its `data`."""
    # Where the module was never imported there is no such environment either.
    module = sys.modules.get("gymnasium.envs.mujoco.mujoco_env")
    return module is not None and isinstance(environment, module.MujocoEnv)


def _has_screen() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _without_screen() -> str:
    for way in ("egl", "osmesa"):
        try:
            importlib.import_module(f"mujoco.{way}").GLContext(64, 64).free()
        except Exception as error:  # a missing library or device shows in many ways, depending on how far one comes
            _LOG.debug("MuJoCo cannot draw with %s: %s", way, error)
        else:
            return way
    return "disabled"


def _warn(message: str) -> None:
    # What its makers should change in a model file is not for those who use it.
    _LOG.log(logging.DEBUG if "deprecated" in message else logging.WARNING, "MuJoCo: %s", message.strip())
