"""What the clients of a server have recorded, as episodes to learn from offline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from rl4sys.collection import RecordedEpisode, UnusableData, load_episodes
from rl4sys.experience import Array, Ending, Segment
from rl4sys.policy import ActionSpec, BoxAction, DiscreteAction


def recorded_episodes(data: str) -> list[RecordedEpisode]:
    """The episodes of a dataset, or of the log of a server's learner: its directory, or that of a server with one."""
    learner = _learner_directory(Path(data))
    return load_episodes(data) if learner is None else episodes_of_log(learner)


def episodes_of_log(learner: Path) -> list[RecordedEpisode]:
    """All episodes that the log of a learner still has; those that lack steps are cut there."""
    # Imported here: with it comes the server, which other runs do not need.
    from rl4sys.server.learners.recorded_experience import RecordedLog, UnusableExperience

    try:
        log = RecordedLog.open(learner)
    except UnusableExperience as error:
        raise UnusableData(f"training.data: {error}") from error
    streams: dict[tuple[object, ...], list[Segment]] = {}
    for entry, segment in log.stored():
        # Another start of a client counts its episodes from 0 again.
        place = (entry.client, entry.epoch, segment.stream.agent, segment.stream.lane, segment.episode)
        streams.setdefault(place, []).append(segment)
    pieces = (piece for segments in streams.values() for piece in _unbroken(segments))
    return [_episode(piece, log.policy.action) for piece in pieces]


def _learner_directory(path: Path) -> Path | None:
    """The directory of the learner that a path names; None if it is neither a learner nor the data of a server."""
    from rl4sys.server.learners.learner_setup import is_learner

    if is_learner(path):
        return path
    found = sorted(place for place in (path / "learners").glob("*") if is_learner(place))
    if len(found) > 1:
        names = ", ".join(place.name for place in found)
        raise UnusableData(f"training.data: {path} has several learners; give {path / 'learners'}/NAME of one: {names}")
    return found[0] if found else None


def _unbroken(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """The segments of one episode in order, divided where steps are missing."""
    piece: list[Segment] = []
    for segment in sorted(segments, key=lambda one: one.start):
        if piece and not segment.follows(piece[-1]):
            yield piece
            piece = []
        piece.append(segment)
    if piece:
        yield piece


def _episode(segments: Sequence[Segment], action: ActionSpec) -> RecordedEpisode:
    # The last row of a segment is the first of the next one.
    observation = {
        name: np.concatenate([*(one.observation[name][:-1] for one in segments), segments[-1].observation[name][-1:]])
        for name in segments[0].observation
    }
    actions = _as_the_system_took(np.concatenate([one.action for one in segments]), action)
    reward = np.concatenate([one.reward for one in segments])
    return RecordedEpisode(observation, actions, reward, segments[-1].ending == Ending.TERMINATED)


def _as_the_system_took(actions: Array, spec: ActionSpec) -> Array:
    """Choices counted from the first one's number, and vectors within their bounds."""
    match spec:
        case DiscreteAction():
            actions = actions + np.asarray(spec.start, actions.dtype)
        case BoxAction():
            low, high = np.array([spec.low, spec.high], np.float32)
            actions = np.clip(actions, low, high)
    return actions
