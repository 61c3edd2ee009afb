"""Each mistake ends in one readable error: no traceback, and no partial files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .commands import Here

TRAIN = ("train", "small.yaml")
DREAMER = ("train", "--algorithm", "dreamer", "--env", "Pendulum-v1")
MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "no config at all": (("train",), "Give a config file, or both --algorithm and --env"),
    "half a choice": (("train", "--algorithm", "ppo"), "both --algorithm and --env"),
    "two configs": (("train", "small.yaml", "b.yaml"), "give one"),
    "missing file": (("train", "smal.yaml"), "Did you mean 'small.yaml'?"),
    "missing shipped file": (("train", "ppo_cartpol.yaml"), "Did you mean 'ppo_cartpole.yaml'?"),
    "malformed file": (("train", "broken.yaml"), "broken.yaml, line 3, column"),
    "unknown algorithm": ((*TRAIN, "algorithm.name=poo"), "did you mean 'ppo'?"),
    "misspelt key": (
        (*TRAIN, "algorithm.gama=0.9"),
        "error: The override algorithm.gama: unknown key; did you mean 'algorithm.gamma'?",
    ),
    "misspelt section": (
        (*TRAIN, "trainning.total_timesteps=9"),
        "The override trainning: unknown key; did you mean 'training'?",
    ),
    "wrong type": ((*TRAIN, "algorithm.lr=fast"), "The override algorithm.lr: got 'fast'; expected a number"),
    "name of another library": (
        (*TRAIN, "algorithm.learning_rate=1e-3"),
        "error: The override algorithm.learning_rate: unknown key; did you mean 'algorithm.lr'?\n",
    ),
    "key without its section": ((*TRAIN, "learning_rate=1e-3"), "did you mean 'algorithm.lr'?"),
    "negative number": ((*TRAIN, "training.total_timesteps=-1"), "expected at least 1"),
    "unknown environment": ((*TRAIN, "environment.name=CartPol-v1"), "Did you mean CartPole-v"),
    "unknown game": (("train", "--algorithm", "ppo", "--env", "atari/Pnog"), "Did you mean atari/Pong"),
    "game that ends at once": (
        ("train", "--algorithm", "ppo", "--env", "atari/Pong", "environment.max_frames=9"),
        "max_frames=9 may end a game before its first step",
    ),
    "continuous actions": (
        ("train", "--algorithm", "dqn", "--env", "Pendulum-v1"),
        "DQN needs one discrete choice per step",
    ),
    "wrong buffer": ((*TRAIN, "buffer.type=uniform"), "ppo cannot learn from a 'uniform' buffer"),
    "memory where there are only transitions": (
        ("train", "--algorithm", "td3", "--env", "Pendulum-v1", "network.actor.type=lstm"),
        "td3 cannot train a network with memory (network.actor.type=lstm); use algorithm.name=ppo, dqn or sac",
    ),
    "sequence longer than replay": (
        (*DREAMER, "buffer.size=50"),
        "buffer.size: A sequence has 64 steps, and buffer.size holds 50: raise buffer.size",
    ),
    "replay smaller than a batch": (
        (*DREAMER, "buffer.size=500"),
        "buffer.size: A batch of 16 sequences of 64 steps is more than the 500 steps of buffer.size",
    ),
    "networks of an algorithm with its own": (
        (*DREAMER, "network.actor.type=lstm"),
        "dreamer has its own networks: set algorithm.size",
    ),
    "window that remembers nothing": (
        (
            "train",
            "--algorithm",
            "ppo",
            "--env",
            "CartPole-v1",
            "network.actor.type=transformer",
            "network.actor.window=1",
        ),
        "network.actor.window: got 1; expected at least 2",
    ),
    "pixels of what does not draw": (
        ("train", "--algorithm", "ppo", "--env", "rl4sys/Recall-v0", "environment.pixels={}"),
        "environment.pixels needs an environment that draws itself",
    ),
    "no device": ((*TRAIN, "device=gpu"), "use auto, cpu, cuda or cuda:1"),
    "no number": ((*TRAIN, "--seed", "1,b"), "expected integers separated by commas"),
    "seed given twice": ((*TRAIN, "--seed", "1,1"), "a seed is given twice"),
    "resume of nothing": (("resume", "nothing"), "There is no run 'nothing'"),
    "resume of a config": (("resume", "small.yaml"), "is not a run"),
    "evaluate of nothing": (("evaluate", "."), "is not a run"),
    "plot of nothing": (("plot", "nothing"), "There is no run 'nothing'"),
}


@pytest.mark.parametrize(
    ("choice", "suggestion"),
    [
        (("--algorithm", "ppoo", "--env", "CartPole-v1"), "unknown algorithm 'ppoo'; did you mean 'ppo'?"),
        (("--algorithm", "ppo", "--env", "CartPol-v1"), "Unknown environment 'CartPol-v1'. Did you mean CartPole-v1"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--seed", "1,2"), ("--dry-run",)])
def test_a_misspelt_name_is_refused_before_anything_is_announced(
    rl4sys: Here, choice: tuple[str, ...], suggestion: str, more: tuple[str, ...]
) -> None:
    code, out, err = rl4sys("train", *choice, *more)
    assert (code, out, err.count("\n"), suggestion in err) == (2, "", 1, True)
    assert not Path("runs").exists()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_sentence(rl4sys: Here, config: Path, mistake: str) -> None:
    Path("broken.yaml").write_text("algorithm:\n  name: [ppo\n")
    before = sorted(os.listdir())
    arguments, message = MISTAKES[mistake]
    code, out, err = rl4sys(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "error: " in err
    assert "Traceback" not in err
    assert err.count("\n") <= 2
    assert sorted(os.listdir()) == before


def test_with_debug_an_error_has_its_traceback(rl4sys: Here, config: Path) -> None:
    code, out, err = rl4sys("train", "small.yaml", "algorithm.name=poo", "--debug")
    assert (code, out, err.startswith("Traceback")) == (2, "", True)
    assert "did you mean 'ppo'" in err


def test_overrides_that_contradict_each_other_are_blamed_and_not_the_file(rl4sys: Here) -> None:
    settings = ["environment.backend=vector", "environment.wrappers=[{name: RescaleAction}]"]
    code, _, err = rl4sys("train", "ppo_cartpole.yaml", *settings, "--dry-run")
    assert code == 2
    assert err.startswith("error: The overrides environment.backend and environment.wrappers: environment: frame_skip")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("algorithm.gamma=hi", "The override algorithm.gamma: got 'hi'; expected a number"),
        ("algorithm.gama=1", "The override algorithm.gama: unknown key; did you mean 'algorithm.gamma'?"),
        ("algorithm.lr=1", "The override algorithm.lr: overrides.algorithm.lr: sweep.algorithm.lr sets it for every"),
    ],
)
def test_overrides_of_a_sweep_are_called_overrides(rl4sys: Here, setting: str, message: str) -> None:
    Path("own.yaml").write_text("base_config: ppo_cartpole.yaml\nsweep: {algorithm.lr: [0.1, 0.2]}\n")
    code, _, err = rl4sys("sweep", "own.yaml", setting, "--dry-run")
    assert (code, err.startswith(f"error: {message}")) == (2, True), err
