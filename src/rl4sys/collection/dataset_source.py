"""A source of recorded episodes: learning from data, without acting."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rl4sys.collection.minari_file import minari_path, read_minari
from rl4sys.collection.recorded_episodes import RecordedEpisode, UnusableData, read_episodes
from rl4sys.collection.source import Collected
from rl4sys.experience import Array, ArraySpec, Ending, SchemaMismatch, Segment, StreamKey
from rl4sys.policy import DiscreteAction, PolicySpec
from rl4sys.state import State, require
from rl4sys.weights import Version

_TURN = 64
"""Steps of a turn."""


def load_episodes(data: str) -> list[RecordedEpisode]:
    """The episodes of an `.npz` file, or of a Minari dataset: its file, its directory or its id."""
    minari = minari_path(data)
    if minari is not None:
        return read_minari(minari)
    path = Path(data)
    if path.suffix != ".npz" or not path.is_file():
        raise UnusableData(
            f"training.data: there is no dataset '{data}'; expected an .npz file of recorded episodes, a Minari "
            f"dataset (its file main_data.hdf5, its directory, or the id of one that is downloaded), or the directory "
            f"of a server's learner."
        )
    return read_episodes(path)


class DatasetSource:
    """Delivers recorded episodes in random order, again and again, a few steps in each turn."""

    def __init__(self, episodes: Sequence[RecordedEpisode], policy: PolicySpec, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self._fingerprint = hashlib.sha256()
        self._episodes = [self._whole(number, episode) for number, episode in enumerate(episodes)]
        if not self._episodes:
            raise UnusableData("training.data: there are no episodes in it.")
        self._taken = 0
        """Episodes delivered in whole, over all passes."""
        self._start = 0
        self._pass, self._order = -1, np.arange(0)
        """The pass through the data that the order is of, and the order of its episodes."""

    @property
    def steps(self) -> int:
        """Those of all episodes together."""
        return sum(episode.steps for episode in self._episodes)

    def collect(self, newest: Version) -> Collected:
        """The next steps."""
        segments: list[Segment] = []
        left = _TURN
        while left:
            piece = self._piece(newest.number, left)
            segments.append(piece)
            left -= piece.steps
        return Collected(segments, ())

    def _piece(self, version: int, most: int) -> Segment:
        """At most so many of the next steps of the present episode."""
        number, place = divmod(self._taken, len(self._episodes))
        if number != self._pass:
            self._order = np.random.default_rng((self._seed, number)).permutation(len(self._episodes))
            self._pass = number
        whole, start = self._episodes[self._order[place]], self._start
        end = min(whole.steps, start + most)
        is_last = end == whole.steps
        piece = Segment(
            stream=whole.stream,
            episode=self._taken,
            start=start,
            policy_version=version,
            ending=whole.ending if is_last else Ending.CONTINUES,
            observation={name: array[start : end + 1] for name, array in whole.observation.items()},
            action=whole.action[start:end],
            reward=whole.reward[start:end],
            extras={name: array[start:end] for name, array in whole.extras.items()},
            carry=whole.carry,
        )
        self._taken, self._start = (self._taken + 1, 0) if is_last else (self._taken, end)
        return piece

    def _whole(self, number: int, episode: RecordedEpisode) -> Segment:
        """An episode as the algorithm expects it."""
        schema, steps = self._policy.segment_schema(), len(episode.reward)
        specs = {spec.name: spec for spec in schema.observation}
        action = _cast(episode.action, schema.action, steps)
        if isinstance(self._policy.action, DiscreteAction):
            action = action - np.asarray(self._policy.action.start, action.dtype)
        segment = Segment(
            stream=StreamKey("data"),
            episode=number,
            start=0,
            policy_version=0,
            ending=Ending.TERMINATED if episode.is_terminated else Ending.TRUNCATED,
            observation={
                name: _cast(array, specs[name], steps + 1) if name in specs else array
                for name, array in episode.observation.items()
            },
            action=action,
            reward=np.asarray(episode.reward, np.float32),
            # No policy of ours decided, so it noted nothing and remembered nothing.
            extras={spec.name: np.zeros((steps, *spec.shape), spec.dtype) for spec in schema.extras},
            carry={spec.name: np.zeros(spec.shape, spec.dtype) for spec in schema.carry},
        )
        try:
            schema.check(segment)
        except SchemaMismatch as error:
            raise UnusableData(f"training.data: it does not fit this environment. {error}") from error
        for array in (*segment.observation.values(), segment.action, segment.reward):
            self._fingerprint.update(np.ascontiguousarray(array).tobytes())
        return segment

    def state(self) -> State:
        """Where in the data it is, and which data that is."""
        return {"taken": self._taken, "start": self._start, "data": self._fingerprint.hexdigest()}

    def restore(self, state: State) -> Sequence[str]:
        """Continue there; other data than before is reported."""
        require(state, "taken", "start", "data")
        self._taken, self._start = int(state["taken"]), int(state["start"])
        return [] if state["data"] == self._fingerprint.hexdigest() else ["training.data has changed"]

    def close(self) -> None:
        """Nothing is open."""


def _cast(array: Array, spec: ArraySpec, rows: int) -> Array:
    """The array in its expected type, where nothing but precision is lost, and shape; else as it is, to be refused."""
    array = np.asarray(array)
    if np.can_cast(array.dtype, spec.dtype, "same_kind"):
        array = array.astype(spec.dtype)
    shape = (rows, *spec.shape)
    return array.reshape(shape) if array.size == np.prod(shape, dtype=int) and len(array) == rows else array
