"""Renders images of MuJoCo simulations, also of several in one process."""

from __future__ import annotations

import atexit
import importlib
import logging
import threading
from typing import Any

import gymnasium
import numpy as np

from rl4sys.environments.mujoco_setup import require_rendering
from rl4sys.experience import Array

_MOST_SHAPES = 2000
"""The most shapes in an image."""
_SHADOW = 8
"""The most shadow pixels per image pixel along one axis."""


class _Contexts(threading.local):
    """The one OpenGL context of each thread: to close one of several would spoil the images of the others."""

    context: Any = None

    def make_current(self) -> None:
        if self.context is None:
            way = require_rendering()
            self.context = importlib.import_module(f"mujoco.{way}").GLContext(64, 64)
            atexit.register(_free, self.context)
        self.context.make_current()


def _free(context: Any) -> None:
    try:
        context.free()
    except Exception as error:  # each driver has errors of its own
        _LOG.debug("Another package has shut the driver down before: %s", error)
        # So that its finalizer does not try again.
        context._context = None


_CONTEXTS = _Contexts()
_LOG = logging.getLogger(__name__)


class MujocoCamera:
    """Renders one simulation; an image depends on nothing but its present state."""

    def __init__(self, model: Any, size: tuple[int, int], camera: int | str | None = None) -> None:
        """`size` is height and width; the camera is one of the model's: if not said, "track", or else the first."""
        self._mujoco = mujoco = importlib.import_module("mujoco")
        height, width = size
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, height)
        # Shadows much finer than the image cannot be seen, and cost most of the time on a CPU.
        model.vis.quality.shadowsize = min(model.vis.quality.shadowsize, _SHADOW * max(size))
        self._model, self._area = model, mujoco.MjrRect(0, 0, width, height)
        self._camera = mujoco.MjvCamera()
        number = _camera_number(mujoco, model, camera)
        if number < 0:
            mujoco.mjv_defaultFreeCamera(model, self._camera)
        else:
            self._camera.type, self._camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, number
        self._options, self._disturbance = mujoco.MjvOption(), mujoco.MjvPerturb()
        self._scene = mujoco.MjvScene(model, _MOST_SHAPES)
        self._resources: Any = None

    def image(self, data: Any) -> Array:
        """What the camera sees, uint8 [height, width, 3]."""
        mujoco = self._mujoco
        _CONTEXTS.make_current()
        if self._resources is None:
            self._resources = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._resources)
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(
            self._model, data, self._options, self._disturbance, self._camera, everything, self._scene
        )
        mujoco.mjr_render(self._area, self._scene, self._resources)
        seen = np.empty((self._area.height, self._area.width, 3), np.uint8)
        mujoco.mjr_readPixels(seen, None, self._area, self._resources)
        # The first row of OpenGL is the lowest.
        return seen[::-1].copy()

    def close(self) -> None:
        """Free what the driver holds for this simulation."""
        if self._resources is not None:
            _CONTEXTS.make_current()
            self._resources.free()
            self._resources = None


class DrawnMujoco(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A MuJoCo environment of Gymnasium that is drawn by `MujocoCamera`, from the camera that was chosen."""

    def __init__(self, environment: gymnasium.Env[Any, Any]) -> None:
        super().__init__(environment)
        inner: Any = environment.unwrapped
        place = inner.camera_name if inner.camera_id is None else inner.camera_id
        self._camera = MujocoCamera(inner.model, (inner.height, inner.width), place)
        self._data = inner.data

    def render(self) -> Any:
        return self._camera.image(self._data)

    def close(self) -> None:
        self._camera.close()
        super().close()


def _camera_number(mujoco: Any, model: Any, camera: int | str | None) -> int:
    """The number of a camera; −1 is one that looks at the whole model from aside."""
    names = [model.camera(number).name for number in range(model.ncam)]
    if camera is None:
        return names.index("track") if "track" in names else min(0, model.ncam - 1)
    if camera in names:
        return names.index(camera)
    if isinstance(camera, int) and -1 <= camera < model.ncam:
        return camera
    raise ValueError(
        f"The model has no camera {camera!r}; choose one of {names}, or its number, or -1 for a free view."
    )
