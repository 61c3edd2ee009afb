"""Numbers that cannot be learned from end a run in one sentence, and what was saved stays good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rl4sys.checkpoints import Checkpoints
from rl4sys.collection.rollout import NotFinite
from rl4sys.experiments import Run, RunDirectory

from .runs import PPO, small

PLUGIN = """
import gymnasium
import numpy as np

class Breaking(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, last=100):
        self.last = last

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(2, np.float32), float("nan") if self.steps > self.last else 1.0, False, False, {}

gymnasium.registry.pop("tests/Breaking-v0", None)
gymnasium.register("tests/Breaking-v0", entry_point=Breaking)
"""


def broken(tmp_path: Path, **overrides: Any) -> tuple[RunDirectory, str]:
    """Run until rewards are lost, after 100 steps in each of two environments: the directory, and what was said."""
    plugin = tmp_path / "breaking.py"
    plugin.write_text(PLUGIN)
    environment = {"name": "tests/Breaking-v0", "num_envs": 2, "max_episode_steps": 150}
    run = Run.create(small(PPO, tmp_path, plugins=[str(plugin)], environment=environment, **overrides))
    with pytest.raises(NotFinite) as caught:
        run.train()
    return run.directory, str(caught.value)


def repair(directory: RunDirectory) -> None:
    values = yaml.safe_load(directory.config.read_text())
    values["environment"]["kwargs"] = {"last": 1_000}
    directory.config.write_text(yaml.safe_dump(values))


@pytest.mark.parametrize("pipelined", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_reward_that_is_not_finite_ends_training_in_one_sentence(tmp_path: Path, pipelined: bool) -> None:
    directory, sentence = broken(tmp_path, training__pipelined=pipelined, training__eval_frequency=0)
    assert sentence.startswith(
        "reward of environment 0 became nan at step 100 of its episode 0, both counted from 0. Repair the environment"
    )
    assert sentence.endswith("what was saved before is intact.")
    assert "\n" not in sentence
    # A rollout in flight is part of a checkpoint, and the one of step 192 would have held the broken numbers.
    assert Checkpoints(directory.checkpoints, 2).load().step == (128 if pipelined else 192)


@pytest.mark.parametrize("pipelined", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_run_resumes_once_the_environment_is_repaired(tmp_path: Path, pipelined: bool) -> None:
    directory, _ = broken(tmp_path, training__pipelined=pipelined, training__eval_frequency=0)
    repair(directory)
    assert Run.resume(directory).train().finished
