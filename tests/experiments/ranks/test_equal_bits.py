"""N ranks learn the same as one process that takes each batch in N parts, to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.runs import DQN, OFF_POLICY, PPO, small
from experiments.test_batches_in_parts import after_warm_up
from experiments.test_exact_resume import CASES
from rl4sys.algorithms import run_update
from rl4sys.experiments import Run

from .groups import fingerprint_of, train_on_ranks

PENDULUM = {"environment__name": "Pendulum-v1"}
SHORT: dict[str, tuple[Mapping[str, Any], dict[str, Any], int]] = {
    "ppo": (PPO, {"algorithm__target_kl": 0.05, "environment__normalize_obs": True}, 2),
    "dqn": (DQN, {}, 2),
    "sac": (OFF_POLICY, {"algorithm__name": "sac", **PENDULUM}, 2),
    "ppo on three ranks": (PPO, {"algorithm__minibatch_size": 10, "environment__normalize_reward": True}, 3),
}
LANES = {"environment__num_envs": 6}
WORLD_MODELS = ("dreamer", "planet")
# Incumbents and times need one process, and are refused on ranks.
ON_RANKS = [case for case in CASES if "imitating" not in case and "by time" not in case]


@pytest.mark.parametrize("case", SHORT)
def test_ranks_equal_one_process_in_parts(tmp_path: Path, case: str) -> None:
    kind, changes, ranks = SHORT[case]
    config = small(kind, tmp_path / "alone", **{**LANES, **changes, "training__ranks": ranks})
    expected = Run.create(config).train().fingerprint
    assert fingerprint_of(train_on_ranks(config, tmp_path / "ranks")) == expected


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("case", ON_RANKS)
def test_every_algorithm_equals_one_process_in_parts(tmp_path: Path, case: str, ranks: int) -> None:
    kind, changes = CASES[case]
    if case.startswith(WORLD_MODELS):
        # Not a multiple of the ranks, and one sequence at least for each.
        changes = changes | {"algorithm__batch_size": ranks + 1}
    config = small(kind, tmp_path / "alone", **{**LANES, **changes, "training__ranks": ranks})
    expected = Run.create(config).train().fingerprint
    assert fingerprint_of(train_on_ranks(config, tmp_path / "ranks")) == expected


@pytest.mark.parametrize("kind", ["ppo", "dqn", "sac", "sql"])
def test_an_update_of_three_ranks_equals_that_of_one_but_for_rounding(tmp_path: Path, kind: str) -> None:
    run, batch = after_warm_up(kind, tmp_path)
    with run:
        algorithm = run.learner.algorithm
        before = algorithm.train_state.state()
        whole = run_update(algorithm, batch)
        algorithm.train_state.restore(before)
        algorithm.train_state.splitter.ranks.take(3, None)
        parts = run_update(algorithm, batch)
        assert parts.metrics == pytest.approx(whole.metrics, rel=2e-3, abs=1e-4, nan_ok=True)
