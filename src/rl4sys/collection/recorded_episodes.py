"""Recorded episodes: the data that offline algorithms learn from, as one file of columns (docs/offline.md)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError
from rl4sys.experience import Array, Arrays

OBSERVATION = "observation"
_PREFIX = f"{OBSERVATION}."


class UnusableData(ConfigError):
    """Recorded data cannot be read, or does not fit the environment."""


@dataclass(frozen=True, slots=True)
class RecordedEpisode:
    """One episode of T steps, as an environment gave and took it."""

    observation: Arrays
    """Named arrays with T + 1 rows: the last is what followed the last action."""
    action: Array
    """T rows, as the environment takes them."""
    reward: Array
    is_terminated: bool
    """Whether the last state is terminal; if not, the episode was cut there and has a future value."""


def save_episodes(path: str | Path, episodes: Sequence[RecordedEpisode]) -> None:
    """Write episodes to an `.npz` file, one after the other in columns."""
    if not episodes:
        raise ValueError("There are no episodes to save.")
    columns = {
        _PREFIX + name: np.concatenate([episode.observation[name] for episode in episodes])
        for name in episodes[0].observation
    }
    columns["action"] = np.concatenate([episode.action for episode in episodes])
    columns["reward"] = np.concatenate([episode.reward for episode in episodes]).astype(np.float32)
    columns["length"] = np.array([len(episode.reward) for episode in episodes], np.int64)
    columns["terminated"] = np.array([episode.is_terminated for episode in episodes], np.bool_)
    written = io.BytesIO()
    np.savez_compressed(written, **columns)  # type: ignore[arg-type]  # its keywords are arrays
    replace_file(Path(path), written.getvalue())


def read_episodes(path: Path) -> list[RecordedEpisode]:
    """The episodes of an `.npz` file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            columns = {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UnusableData(f"training.data: {path} cannot be read as .npz ({error}).") from error
    missing = {"action", "reward", "length", "terminated"} - columns.keys()
    if missing:
        raise UnusableData(f"training.data: {path} lacks the columns {sorted(missing)}; docs/offline.md lists them.")
    return list(_episodes(path, columns))


def _episodes(path: Path, columns: Mapping[str, Array]) -> Iterator[RecordedEpisode]:
    length = columns["length"]
    observation = {
        name.removeprefix(_PREFIX): array
        for name, array in columns.items()
        if name == OBSERVATION or name.startswith(_PREFIX)
    }
    rows = {"action": length.sum(), "reward": length.sum(), "terminated": len(length)}
    found = {name: len(columns[name]) for name in rows}
    found |= {name: len(array) for name, array in observation.items()}
    rows |= dict.fromkeys(observation, length.sum() + len(length))
    if not observation or found != rows or (length < 1).any():
        raise UnusableData(f"training.data: {path} has columns of {found} rows; expected {rows}, by its 'length'.")
    step = 0
    for number, steps in enumerate(length.tolist()):
        # Each episode before has one more observation than steps.
        seen, taken = slice(step + number, step + number + steps + 1), slice(step, step + steps)
        yield RecordedEpisode(
            {name: array[seen] for name, array in observation.items()},
            columns["action"][taken],
            columns["reward"][taken],
            bool(columns["terminated"][number]),
        )
        step += steps


def record_episodes(
    environment: gymnasium.Env[Any, Any], decide: Callable[[Any], Any], episodes: int, seed: int = 0
) -> list[RecordedEpisode]:
    """Run whole episodes in an environment, deciding by a function of its observation."""
    recorded = []
    for number in range(episodes):
        observation, _ = environment.reset(seed=seed + number)
        seen, actions, rewards, is_over = [observation], [], [], False
        while not is_over:
            action = decide(observation)
            observation, reward, terminated, truncated, _ = environment.step(action)
            seen.append(observation)
            actions.append(action)
            rewards.append(reward)
            is_over = terminated or truncated
        named = [each if isinstance(each, Mapping) else {OBSERVATION: each} for each in seen]
        arrays = {name: np.stack([np.asarray(each[name]) for each in named]) for name in named[0]}
        recorded.append(RecordedEpisode(arrays, np.asarray(actions), np.asarray(rewards, np.float32), terminated))
    return recorded
