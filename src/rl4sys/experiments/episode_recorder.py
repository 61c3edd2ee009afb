"""A callback that keeps the episodes of a training as a dataset to learn from offline (docs/offline.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from rl4sys.collection import Collected, RecordedEpisode, save_episodes, save_minari
from rl4sys.experience import Ending, Segment, StreamKey
from rl4sys.experiments.callbacks import Callback, CallbackConfig, register_callback
from rl4sys.policy import DiscreteAction

if TYPE_CHECKING:
    from rl4sys.experiments.run import Run

_DIRECTORY = "recorded"


@register_callback("record_episodes")
class EpisodeRecorderConfig(CallbackConfig):
    """Keeps the episodes that were collected, in the run's `recorded/`, for `rl4sys train --data`."""

    format: Literal["npz", "hdf5"] = "npz"
    """`npz` for numpy, or `hdf5` as Minari lays it out, which needs the extra `rl4sys[data]`."""
    max_steps: int = Field(1_000_000, ge=1)
    """Steps that are kept, of the newest episodes. They are in memory until the run ends."""

    def build(self) -> EpisodeRecorder:
        """A recorder without episodes."""
        return EpisodeRecorder(self.format, self.max_steps)


class EpisodeRecorder(Callback):
    """Puts segments together to whole episodes, and writes them when the run ends.

    The file is named after the step at which this process began: a resumed run writes another one. Episodes that were
    already under way then are left out.
    """

    def __init__(self, format_: str, max_steps: int) -> None:
        self._format, self._max_steps = format_, max_steps
        self._parts: dict[StreamKey, list[Segment]] = {}
        self._episodes: list[RecordedEpisode] = []
        self._steps = 0
        self._began: int | None = None

    def on_step(self, run: Run, collected: Collected) -> str | None:
        """Take the segments of a turn."""
        if self._began is None:
            self._began = run.steps
        action = run.learner.algorithm.policies.explore.action
        first = action.start if isinstance(action, DiscreteAction) else 0
        for segment in collected.segments:
            parts = self._parts.setdefault(segment.stream, [])
            if parts and not segment.follows(parts[-1]):
                parts.clear()
            if parts or segment.start == 0:
                parts.append(segment)
            if parts and segment.ending is not Ending.CONTINUES:
                self._keep(recorded(parts, first))
                parts.clear()
        return None

    def on_end(self, run: Run) -> None:
        """Write what was recorded."""
        if self._episodes:
            path = run.directory.path / _DIRECTORY / f"episodes-{self._began or 0:012d}.{self._format}"
            path.parent.mkdir(exist_ok=True)
            (save_minari if self._format == "hdf5" else save_episodes)(path, self._episodes)

    def _keep(self, episode: RecordedEpisode) -> None:
        self._episodes.append(episode)
        self._steps += len(episode.reward)
        while self._steps > self._max_steps and len(self._episodes) > 1:
            self._steps -= len(self._episodes.pop(0).reward)


def recorded(parts: Sequence[Segment], first_choice: int) -> RecordedEpisode:
    """The whole episode of consecutive segments; choices are counted as the environment does."""
    names = parts[0].observation
    observation = {
        name: np.concatenate([*(part.observation[name][:-1] for part in parts), parts[-1].observation[name][-1:]])
        for name in names
    }
    action = np.concatenate([part.action for part in parts])
    return RecordedEpisode(
        observation,
        action + first_choice if first_choice else action,
        np.concatenate([part.reward for part in parts]),
        parts[-1].ending is Ending.TERMINATED,
    )
