"""One update can be read: it runs through few files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import rl4sys
from algorithms.actor_critic import ASYMMETRIC
from algorithms.problems import DISCRETE, fixed_batch, problem, transitions
from rl4sys.algorithms import ALGORITHMS

SOURCES = str(Path(rl4sys.__file__).parent)


@pytest.mark.parametrize("name", ["ppo", "dqn", "sac", "td3", "ddpg"])
def test_an_update_touches_at_most_seven_of_our_files(name: str) -> None:
    action = DISCRETE if name in ("ppo", "dqn") else ASYMMETRIC
    settings = {"policy_delay": 1} if name == "td3" else {}
    algorithm = ALGORITHMS.parse({"name": name, **settings}).build(problem(action))
    state = algorithm.train_state
    batch = fixed_batch(problem(action)) if name == "ppo" else state.tensors(transitions(problem(action)))
    touched: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            touched.add(frame.f_code.co_filename.removeprefix(SOURCES))

    sys.setprofile(note)
    try:
        algorithm.update(batch)
    finally:
        sys.setprofile(None)
    assert f"/algorithms/{name}.py" in touched
    assert len(touched) <= 7, sorted(touched)
