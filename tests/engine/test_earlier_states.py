"""States that version 0.1 saved still train, and as they would have then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from algorithms.actor_critic import ASYMMETRIC
from algorithms.problems import DISCRETE, fixed_batch, problem, transitions
from rl4sys.algorithms import ALGORITHMS, run_update
from rl4sys.state import from_text

SAVED = json.loads((Path(__file__).parent / "states_of_0_1.json").read_text())


@pytest.mark.parametrize("case", SAVED)
def test_a_state_of_an_earlier_version_continues(case: str) -> None:
    config, state, expected = (SAVED[case][part] for part in ("config", "state", "metrics"))
    action = DISCRETE if case in ("ppo", "ppo_apart", "dqn", "sac_discrete") else ASYMMETRIC
    algorithm = ALGORITHMS.parse(config).build(problem(action))
    algorithm.train_state.restore(from_text(json.dumps(state)))
    batch = fixed_batch(problem(action)) if config["name"] == "ppo" else transitions(problem(action))
    metrics = run_update(algorithm, batch).metrics
    # An actor that is not due reports no loss; then it repeated the last one.
    assert metrics.keys() <= expected.keys()
    assert metrics == pytest.approx({name: expected[name] for name in metrics}, rel=1e-3, abs=1e-5)
