from __future__ import annotations

from pathlib import Path

import numpy as np

from reporting_environment import REPORTING
from rl4sys.collection import load_episodes
from rl4sys.experiments import Run

from .runs import DQN, PPO, small


def test_episodes_of_a_training_can_be_learned_from(tmp_path: Path) -> None:
    settings = {"environment__name": REPORTING, "callbacks": [{"name": "record_episodes"}]}
    run = Run.create(small(PPO, tmp_path, training__total_timesteps=128, **settings))
    run.train()
    (file,) = (run.directory.path / "recorded").iterdir()
    episodes = load_episodes(str(file))
    assert len(episodes) == 32
    assert all(episode.is_terminated and len(episode.reward) == 4 for episode in episodes)
    learned = Run.create(small(DQN, tmp_path, environment__name=REPORTING, training__data=str(file)))
    assert learned.train().finished


def test_episodes_longer_than_a_turn_are_put_together(tmp_path: Path) -> None:
    callbacks = [{"name": "record_episodes", "max_steps": 100}]
    run = Run.create(small(DQN, tmp_path, environment__num_envs=1, callbacks=callbacks))
    run.train()
    (file,) = (run.directory.path / "recorded").iterdir()
    episodes = load_episodes(str(file))
    lengths = [int(line.split(",")[4]) for line in run.directory.episodes.read_text().splitlines()[1:]]
    assert [len(episode.reward) for episode in episodes] == lengths[-len(episodes) :]
    assert all(len(episode.observation["observation"]) == len(episode.reward) + 1 for episode in episodes)
    assert sum(len(episode.reward) for episode in episodes) <= 100


def test_the_layout_of_minari_is_read_back(tmp_path: Path) -> None:
    callbacks = [{"name": "record_episodes", "format": "hdf5"}, {"name": "record_episodes"}]
    run = Run.create(small(PPO, tmp_path, callbacks=callbacks))
    run.train()
    hdf5, npz = sorted((run.directory.path / "recorded").iterdir())
    for one, other in zip(load_episodes(str(hdf5)), load_episodes(str(npz)), strict=True):
        assert np.array_equal(one.observation["observation"], other.observation["observation"])
        assert np.array_equal(one.action, other.action)
        assert one.is_terminated == other.is_terminated
