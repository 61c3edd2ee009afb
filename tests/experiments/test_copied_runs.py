"""A run that was copied to another machine works there without the files that it was trained with."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv


class Mine(CartPoleEnv):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, info


class Halved(gymnasium.RewardWrapper):
    def reward(self, reward):
        return reward / 2
"""
TRAIN = """
import rl4sys
rl4sys.train(
    env="my_plant:Mine", algorithm="ppo", total_timesteps=64,
    overrides={"environment.max_episode_steps": 20, "environment.wrappers": ["my_plant:Halved"],
               "environment.num_envs": 2, "buffer.size": 32, "algorithm.minibatch_size": 16, "experiment.threads": 1,
               "training.num_eval_episodes": 2, "logging.terminal": False, "logging.tensorboard": False},
)
"""


def python(text: str, directory: Path) -> str:
    ended = subprocess.run([sys.executable, "-c", text], cwd=directory, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_a_copied_run_evaluates_and_acts_without_its_modules(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "my_plant.py").write_text(MODULE)
    python(TRAIN, here)
    (run,) = (path for path in (here / "runs").iterdir() if path.is_dir())
    shutil.copytree(run, there / "runs" / run.name)
    shutil.rmtree(here)
    require_usable(there)


@pytest.mark.slow
def test_a_copied_run_has_the_whole_package_that_it_was_trained_with(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "my_lab" / "plants").mkdir(parents=True)
    (here / "my_lab" / "plants" / "pole.py").write_text("from my_lab.speed import factor\n" + MODULE)
    (here / "my_lab" / "speed.py").write_text("factor = 1.0\n")
    (here / "my_lab" / "__init__.py").write_text("")
    python(TRAIN.replace("my_plant", "my_lab.plants.pole"), here)
    (run,) = (path for path in (here / "runs").iterdir() if path.is_dir())
    shutil.copytree(run, there / "runs" / run.name)
    shutil.rmtree(here)
    require_usable(there)


def require_usable(directory: Path) -> None:
    evaluate = "from rl4sys.cli.main import main; import sys; sys.argv[1:] = ['evaluate', 'last']; main()"
    assert "return" in python(evaluate, directory)
    assert python("import rl4sys; print(rl4sys.load('last').act([0, 0, 0, 0.0]))", directory).strip() in ("0", "1")
