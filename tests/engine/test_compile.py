"""Compiled losses give the same update but for rounding."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from algorithms.problems import DISCRETE, fixed_batch, problem, transitions
from rl4sys.algorithms import ALGORITHMS, run_update
from rl4sys.learning.assembly import LearnerAssembly
from rl4sys.networks import NetworksConfig
from rl4sys.replay import TrajectoryConfig
from rl4sys.seeding import Seeds


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_a_compiled_update_equals_the_plain_one_but_for_rounding(
    name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    asked = problem(DISCRETE)
    batch = fixed_batch(asked) if name == "ppo" else transitions(asked)
    config = ALGORITHMS.parse({"name": name, **({"epochs": 2} if name == "ppo" else {})})
    found = []
    with caplog.at_level(logging.INFO):
        for compiles in (False, True):
            algorithm = config.build(replace(asked, compile=compiles))
            found.append([run_update(algorithm, batch).metrics for _ in range(2)][-1])
    assert found[1] == pytest.approx(found[0], rel=1e-3, abs=1e-5)
    assert "compiled " in caplog.text


def test_without_a_compiler_one_line_says_so(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    asked = problem()
    assembly = LearnerAssembly(
        ALGORITHMS.parse({"name": "ppo"}), NetworksConfig(), TrajectoryConfig(), Seeds(0), asked.device, compile=True
    )
    algorithm = assembly.build_algorithm(asked.observation, asked.action)
    assert not algorithm.train_state.problem.compile
    assert "no C++ compiler was found" in caplog.text
