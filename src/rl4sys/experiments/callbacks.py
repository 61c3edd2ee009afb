"""Callbacks: code of the user's that looks at a run while it trains, and may end it as a success."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rl4sys.collection import Collected
from rl4sys.config import Config, Registry
from rl4sys.environments import EpisodeSummary
from rl4sys.learning import Evaluation

if TYPE_CHECKING:
    from rl4sys.experiments.run import Run


class Callback:
    """Override what you need. A method that returns a text ends the run as a success; the text is the reason.

    An exception ends the run as a failure, with a checkpoint. A callback has no saved state: after a resume it is new.
    """

    def on_step(self, run: Run, collected: Collected) -> str | None:
        """After each turn of collecting, with its segments and before they are learned from."""
        return None

    def on_episode(self, run: Run, episode: EpisodeSummary) -> str | None:
        """After each episode, with its return, its length and the means of the numbers in `info`."""
        return None

    def on_update(self, run: Run, metrics: Mapping[str, float]) -> str | None:
        """After each turn of learning in which something was learned, with the losses and their like."""
        return None

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> str | None:
        """After each evaluation, with the returns of its episodes."""
        return None

    def on_end(self, run: Run) -> None:
        """When the run ends, is stopped or fails, before it is closed."""


class CallbackConfig(Config):
    """Settings of a callback that a config names."""

    @abstractmethod
    def build(self) -> Callback:
        """The callback for one run."""


CALLBACKS: Registry[CallbackConfig] = Registry("callback", CallbackConfig)
register_callback = CALLBACKS.register


class Callbacks:
    """All callbacks of a run; the first reason to end it is kept."""

    reason: str | None = None
    """Why a callback has ended the run, if one has."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = tuple(callbacks)

    def add(self, callbacks: Sequence[Callback]) -> None:
        """Call these, too."""
        self._callbacks += tuple(callbacks)

    def on_step(self, run: Run, collected: Collected) -> None:
        """One turn was collected."""
        for callback in self._callbacks:
            self._note(callback.on_step(run, collected))
            for episode in collected.episodes:
                self._note(callback.on_episode(run, episode))

    def on_update(self, run: Run, metrics: Mapping[str, float]) -> None:
        """Something was learned, unless there are no metrics."""
        if metrics:
            self._each(lambda callback: callback.on_update(run, metrics))

    def on_evaluation(self, run: Run, evaluation: Evaluation) -> None:
        """An evaluation ended."""
        self._each(lambda callback: callback.on_evaluation(run, evaluation))

    def on_end(self, run: Run) -> None:
        """The run ends, however it does."""
        for callback in self._callbacks:
            callback.on_end(run)

    def _each(self, call: Callable[[Callback], str | None]) -> None:
        for callback in self._callbacks:
            self._note(call(callback))

    def _note(self, reason: str | None) -> None:
        self.reason = self.reason or reason
