"""The incumbent of an environment: a function that decides as the system did before there was a policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl4sys.config import ConfigError
from rl4sys.config.plugins import imported_module
from rl4sys.environments.spaces import EnvironmentSpec
from rl4sys.experience import Array, Arrays
from rl4sys.policy import CANDIDATES, COUNT, MASK, BoxAction, DiscreteAction, MultiDiscreteAction, action_array


class UnsuitableIncumbent(ConfigError):
    """An incumbent cannot be found, or does not return actions of the environment."""


class Incumbent:
    """Decides for every lane by a function of the observation, which has no memory."""

    def __init__(self, name: str, spec: EnvironmentSpec) -> None:
        """`name`: `module:function`. The function gets one array, or a dict where there are several or a mask."""
        self.name, self._action = name, spec.action
        self._array = action_array(spec.action)
        module, _, function = name.partition(":")
        if not module or not function.isidentifier():
            raise UnsuitableIncumbent(
                f"environment.incumbent is '{name}'; expected module:function, such as my_system:heuristic."
            )
        try:
            self._decide = getattr(imported_module(module), function)
        except (ImportError, AttributeError) as error:
            raise UnsuitableIncumbent(
                f"environment.incumbent: there is no {name} ({error}). Name a function of an importable module."
            ) from error
        if not callable(self._decide):
            raise UnsuitableIncumbent(f"environment.incumbent: {name} is {self._decide!r:.80}; expected a function.")

    def decide(self, observation: Arrays) -> Array:
        """The actions for observations with one row for each lane, as they are recorded."""
        lanes = len(next(iter(observation.values())))
        actions = np.stack([self._read(self._decide(_row(observation, lane))) for lane in range(lanes)])
        there = observation.get(COUNT)
        if there is not None and (absent := np.flatnonzero(actions >= there[:, 0])).size:
            choice, count = actions[absent[0]], there[absent[0], 0]
            raise UnsuitableIncumbent(
                f"environment.incumbent: {self.name} returned {choice} of {count:.0f} candidates; the first is 0."
            )
        return actions

    def _read(self, value: Any) -> Array:
        try:
            action = np.asarray(value).astype(self._array.dtype, casting="same_kind")
        except (TypeError, ValueError) as error:
            raise self._unsuitable(value) from error
        if isinstance(self._action, DiscreteAction):
            action = action - self._action.start
        if action.shape != self._array.shape or not self._is_within(action):
            raise self._unsuitable(value)
        return action

    def _is_within(self, action: Array) -> bool:
        match self._action:
            case DiscreteAction(n=n):
                return bool(0 <= action < n)
            case MultiDiscreteAction(sizes=sizes):
                return bool(((action >= 0) & (action < np.array(sizes))).all())
            case BoxAction():
                # Beyond the bounds they are executed at the bounds, like those of a policy.
                return bool(np.isfinite(action).all())
        choices = action[: len(self._action.sizes)]
        whole = (choices == np.floor(choices)) & (choices >= 0) & (choices < np.array(self._action.sizes))
        return bool(np.isfinite(action).all() and whole.all())

    def _unsuitable(self, value: Any) -> UnsuitableIncumbent:
        return UnsuitableIncumbent(
            f"environment.incumbent: {self.name} returned {value!r:.80}; expected an action of the environment, "
            f"{self._array}, one of {self._action}."
        )


def _row(observation: Arrays, lane: int) -> Any:
    """The observation of a lane as the environment showed it: of candidates only those that are there."""
    row = {name: array[lane] for name, array in observation.items()}
    if COUNT in row:
        there = int(row.pop(COUNT)[0])
        row |= {name: row[name][:there] for name in (CANDIDATES, MASK) if name in row}
    return next(iter(row.values())) if len(row) == 1 else row
