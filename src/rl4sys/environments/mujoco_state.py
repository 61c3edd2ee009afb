"""The whole state of a MuJoCo simulation as arrays, so that a restored one continues to the bit."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from rl4sys.experience import Array
from rl4sys.state import State, StateMismatch, require


class MujocoState:
    """Saves and restores one simulation.

    The integration state decides where the simulation goes. Environments also read what was derived from an earlier
    position (Ant and Humanoid their place before a step, dm_control the readings of its sensors), so everything of
    fixed size is kept beside it. What a task changes in the model itself, such as the place of a target, is kept too,
    if the digests of the model as it was loaded are given.
    """

    def __init__(self, model: Any, data: Any, loaded: Mapping[str, bytes] | None = None) -> None:
        # The package is imported already: a model and its data exist.
        self._mujoco = importlib.import_module("mujoco")
        self._model, self._data, self._loaded = model, data, loaded or {}
        self._kind = int(self._mujoco.mjtState.mjSTATE_INTEGRATION)
        # New data has no contacts yet, so that all that varies with them is empty and left out.
        self._names = sorted(_arrays(self._mujoco.MjData(model)))

    def get_state(self) -> State:
        """Integration state, derived arrays and changes of the model."""
        return {
            "integration": self._integration(),
            "derived": {name: getattr(self._data, name).copy() for name in self._names},
            "model": {name: getattr(self._model, name).copy() for name in self._changed()},
        }

    def set_state(self, state: State) -> None:
        """Continue from what `get_state` returned, in a simulation of the same model."""
        require(state, "integration", "derived", "model")
        integration = np.array(state["integration"], np.float64)
        if integration.shape != self._integration().shape or sorted(state["derived"]) != self._names:
            raise StateMismatch(
                "The saved state of the simulation does not fit its model. It was written by another environment or "
                "another version of MuJoCo; resume with that one."
            )
        for name, array in state["model"].items():
            _put(self._model, name, array)
        saved, found = sorted(state["model"]), sorted(self._changed())
        if saved != found:
            raise StateMismatch(
                f"The saved simulation had changed {saved} in its model; here {found} differ. Resume "
                f"with the environment and the version of MuJoCo that the run was saved with."
            )
        self._mujoco.mj_setState(self._model, self._data, integration, self._kind)
        # Finds contacts and constraints again, which cannot be written.
        self._mujoco.mj_step1(self._model, self._data)
        for name, array in state["derived"].items():
            _put(self._data, name, array)

    def _integration(self) -> Array:
        found = np.zeros(self._mujoco.mj_stateSize(self._model, self._kind))
        self._mujoco.mj_getState(self._model, self._data, found, self._kind)
        return found

    def _changed(self) -> list[str]:
        if not self._loaded:
            return []
        digests = model_digests(self._model)
        return [name for name, digest in digests.items() if digest != self._loaded[name]]


def model_digests(model: Any) -> dict[str, bytes]:
    """A digest of each array of a model, by which changes are found without keeping a copy of its textures."""
    return {name: hashlib.blake2b(array.tobytes()).digest() for name, array in _arrays(model).items()}


def _arrays(holder: Any) -> dict[str, Array]:
    """The arrays of numbers in a model or its data, by name."""
    found = {name: getattr(holder, name) for name in dir(holder) if not name.startswith("_")}
    return {
        name: array
        for name, array in found.items()
        if isinstance(array, np.ndarray) and array.size and array.dtype.kind in "biuf"
    }


def _put(holder: Any, name: str, array: Array) -> None:
    place = getattr(holder, name)
    if place.shape != array.shape:
        raise StateMismatch(
            f"The saved '{name}' has the shape {array.shape}; this simulation wants {place.shape}. "
            f"Resume with the environment and the version of MuJoCo that the run was saved with."
        )
    place[...] = array
