"""Episodes of Minari datasets: HDF5 files with a group for each episode."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.collection.recorded_episodes import OBSERVATION, RecordedEpisode, UnusableData
from rl4sys.experience import Array

SUFFIXES = (".hdf5", ".h5")
_INSIDE = Path("data") / "main_data.hdf5"
"""Where the file lies in the directory of a dataset."""


def minari_path(name: str) -> Path | None:
    """The file of a dataset, given as that file, as its directory, or by its id where Minari keeps downloads."""
    downloads = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
    places = [Path(name), Path(name) / _INSIDE, downloads / name / _INSIDE]
    return next((place for place in places if place.is_file() and place.suffix in SUFFIXES), None)


def read_minari(path: Path) -> list[RecordedEpisode]:
    """All episodes in order. Observations may be one array or a dict of arrays."""
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise UnusableData(
            f"training.data: {path} is an HDF5 file, which needs h5py: pip install 'rl4sys[data]'."
        ) from error
    try:
        with h5py.File(path, "r") as file:
            names = [name for name in file if name.startswith("episode_")]
            ordered = sorted(names, key=lambda name: int(name.rpartition("_")[2]))
            return [_episode(path, file[name]) for name in ordered]
    except (OSError, KeyError) as error:
        raise UnusableData(f"training.data: {path} is not a Minari dataset ({error}).") from error


def save_minari(path: str | Path, episodes: Sequence[RecordedEpisode]) -> None:
    """Write episodes as Minari lays them out in its `main_data.hdf5`."""
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise UnusableData(f"{path} is an HDF5 file, which needs h5py: pip install 'rl4sys[data]'.") from error
    with h5py.File(path, "w") as file:
        for number, episode in enumerate(episodes):
            group = file.create_group(f"episode_{number}")
            steps = len(episode.reward)
            if list(episode.observation) == [OBSERVATION]:
                group["observations"] = episode.observation[OBSERVATION]
            else:
                for name, array in episode.observation.items():
                    group[f"observations/{name.replace('.', '/')}"] = array
            is_last = np.arange(steps) == steps - 1
            group["actions"], group["rewards"] = episode.action, episode.reward
            group["terminations"] = is_last & episode.is_terminated
            group["truncations"] = is_last & (not episode.is_terminated)
            group.attrs.update({"id": number, "total_steps": steps})
        file.attrs["total_episodes"] = len(episodes)
        file.attrs["total_steps"] = sum(len(episode.reward) for episode in episodes)


def _episode(path: Path, group: Any) -> RecordedEpisode:
    observation = dict(_leaves(group["observations"], ""))
    action = group["actions"]
    if not hasattr(action, "shape"):
        raise UnusableData(f"training.data: {path} has actions of several parts; only one array can be learned from.")
    terminated = bool(group["terminations"][-1])
    return RecordedEpisode(observation, action[()], np.asarray(group["rewards"][()], np.float32), terminated)


def _leaves(node: Any, name: str) -> Iterator[tuple[str, Array]]:
    """The arrays below a node, nested names joined by dots."""
    if hasattr(node, "shape"):
        yield name or OBSERVATION, node[()]
        return
    for key in node:
        yield from _leaves(node[key], f"{name}.{key}" if name else key)
