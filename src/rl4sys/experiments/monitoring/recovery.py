"""Rolls a run back to its last good checkpoint when learning diverges, a limited number of times."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from rl4sys.checkpoints import Checkpoints, NoCheckpoint
from rl4sys.experiments.monitoring.config import StabilitySection
from rl4sys.experiments.monitoring.events import Events
from rl4sys.learning import Diverged, Learner
from rl4sys.state import State, split

_log = logging.getLogger(__name__)


class Recovery:
    """Restores weights and optimizers of an earlier checkpoint; environments, experience and steps continue."""

    def __init__(self, checkpoints: Checkpoints, limits: StabilitySection, events: Events) -> None:
        self.rollbacks = 0
        """How often the run was rolled back."""
        self._checkpoints, self._limits, self._events = checkpoints, limits, events
        self._used: list[int] = []

    def roll_back(self, learner: Learner, reason: str, before: int | None = None) -> None:
        """Roll back to the newest good checkpoint from `before` a step; raises `Diverged` if that was done too often.

        One that was used already is not used again: it led here.
        """
        if self.rollbacks >= self._limits.max_rollbacks:
            often = f"{self.rollbacks} time(s) already, which is all that stability.max_rollbacks allows"
            raise Diverged(f"{reason} The run went back to a good checkpoint {often}.")
        found = self._good(before)
        if found is None:
            raise Diverged(f"{reason} There is no good checkpoint to go back to that was not tried before.")
        step, state = found
        self.rollbacks += 1
        self._used.append(step)
        learner.roll_back(state["learner"])
        self._events.note(learner.steps, "rollback", to=step, number=self.rollbacks, reason=reason)
        _log.warning(
            "At step %s the run goes back to the weights of step %s (rollback %d of at most %d). %s",
            *(f"{learner.steps:,}", f"{step:,}", self.rollbacks, self._limits.max_rollbacks, reason),
        )

    def _good(self, before: int | None) -> tuple[int, Any] | None:
        for step, state in self._loaded(before):
            # Checkpoints of older versions know of neither.
            learner, is_scheduled = state["learner"], "watch" not in state or state["watch"]["is_scheduled"]
            is_calm = "skips" not in learner or learner["skips"]["in_row"] == 0
            if is_scheduled and is_calm and _is_finite(learner["algorithm"]):
                return step, state
        return None

    def _loaded(self, before: int | None) -> Iterator[tuple[int, State]]:
        """Newest first. A checkpoint of a later step than the run's belongs to an abandoned history."""
        for step in reversed(self._checkpoints.steps()):
            if step in self._used or (before is not None and step > before):
                continue
            try:
                loaded = self._checkpoints.load_policy(step)
            except NoCheckpoint:
                return
            if loaded.step == step:
                yield step, loaded.state

    def state(self) -> State:
        """How often, and which checkpoints."""
        return {"rollbacks": self.rollbacks, "used": list(self._used)}

    def restore(self, state: State) -> None:
        """Continue counting there."""
        self.rollbacks, self._used = int(state["rollbacks"]), [int(step) for step in state["used"]]


def _is_finite(state: State) -> bool:
    """Whether every number of a state is one."""
    _, arrays = split(state)
    return all(bool(np.isfinite(array).all()) for array in arrays.values() if array.dtype.kind == "f")
