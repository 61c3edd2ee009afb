"""Minari's HDF5 files become episodes; without h5py one line says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from rl4sys.collection import UnusableData, load_episodes


def written(directory: Path, *, nested: bool = False) -> Path:
    import h5py

    path = directory / "data" / "main_data.hdf5"
    path.parent.mkdir(parents=True)
    with h5py.File(path, "w") as file:
        for number in (0, 1, 10):
            group = file.create_group(f"episode_{number}")
            seen = np.full((4, 2), number, np.float64)
            if nested:
                group.create_dataset("observations/goal", data=seen)
                group.create_dataset("observations/position", data=seen)
            else:
                group.create_dataset("observations", data=seen)
            group.create_dataset("actions", data=np.zeros((3, 1), np.float32))
            group.create_dataset("rewards", data=np.arange(3, dtype=np.float64))
            group.create_dataset("terminations", data=np.array([False, False, number == 1]))
            group.create_dataset("truncations", data=np.array([False, False, number != 1]))
    return directory


def test_a_dataset_is_read_from_its_directory_in_order(tmp_path: Path) -> None:
    episodes = load_episodes(str(written(tmp_path)))
    assert [episode.observation["observation"][0, 0] for episode in episodes] == [0, 1, 10]
    assert [episode.is_terminated for episode in episodes] == [False, True, False]
    assert episodes[0].reward.tolist() == [0, 1, 2]


def test_a_downloaded_dataset_is_found_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "toy" / "small-v0", nested=True)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    assert set(load_episodes("toy/small-v0")[0].observation) == {"goal", "position"}


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "main_data.hdf5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UnusableData, match=r"needs h5py: pip install 'rl4sys\[data\]'"):
        load_episodes(str(tmp_path / "main_data.hdf5"))
