"""A batch that is split because memory is short gives the same update but for rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import run_update
from rl4sys.experiments import Run
from rl4sys.learning import Updating
from rl4sys.networks.layer_chain import LayerChain
from rl4sys.state import split

from .runs import DQN, OFF_POLICY, PPO, small

PENDULUM = {"environment__name": "Pendulum-v1"}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ppo": (PPO, {"environment__name": "Pendulum-v1"}),
    "ppo apart": (PPO, {"algorithm__critic_epochs": 2, "algorithm__clip_value": 0.2}),
    "dqn": (DQN, {"algorithm__n_step": 3}),
    "sac": (OFF_POLICY, {"algorithm__name": "sac", **PENDULUM}),
    "sac ensemble": (
        OFF_POLICY,
        {"algorithm__name": "sac", "algorithm__ensemble": 3, "algorithm__target_subset": 2, **PENDULUM},
    ),
    "sac on choices": (OFF_POLICY, {"algorithm__name": "sac", "environment__name": "CartPole-v1"}),
    "td3": (OFF_POLICY, {"algorithm__name": "td3", "algorithm__policy_delay": 1, **PENDULUM}),
    "sql": (OFF_POLICY, {"algorithm__name": "sql", "algorithm__value_samples": 4, **PENDULUM}),
    "ddpg": (OFF_POLICY, {"algorithm__name": "ddpg", **PENDULUM}),
}


def after_warm_up(kind: str, directory: Path) -> tuple[Run, Any]:
    """A run that has learned a little, and the last batch that it learned from."""
    parts, changes = KINDS[kind]
    run = Run.create(small(parts, directory, **changes))
    batches: list[Any] = []

    def noting(update: Updating) -> Updating:
        return lambda batch: (batches.append(batch), update(batch))[1]

    run.learner.watch(noting)
    while run.steps < 128:
        run.step()
    return run, batches[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_in_parts_equals_the_whole_but_for_rounding(tmp_path: Path, kind: str) -> None:
    run, batch = after_warm_up(kind, tmp_path)
    with run:
        algorithm = run.learner.algorithm
        before = algorithm.train_state.state()
        whole = run_update(algorithm, batch)
        expected = split(algorithm.train_state.state())[1]
        algorithm.train_state.restore(before)
        algorithm.train_state.splitter.parts = 3
        parts = run_update(algorithm, batch)
        actual = split(algorithm.train_state.state())[1]
        assert any("first_moment" in name for name in actual)
        for name, array in actual.items():
            np.testing.assert_allclose(array, expected[name], rtol=2e-3, atol=2e-5, err_msg=name)
        assert parts.metrics == pytest.approx(whole.metrics, rel=2e-3, abs=1e-4, nan_ok=True)
        if whole.feedback:
            np.testing.assert_allclose(parts.feedback["priority"], whole.feedback["priority"], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["sac", "td3"])
def test_a_network_that_runs_out_of_memory_is_evaluated_in_parts(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, batch = after_warm_up(kind, tmp_path)
    with run:
        algorithm = run.learner.algorithm
        plain = LayerChain.run

        def limited(chain: LayerChain, parts: Any) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...]]:
            if parts[0].shape[-2] > 8:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return plain(chain, parts)

        before = algorithm.train_state.state()
        expected = run_update(algorithm, batch)
        algorithm.train_state.restore(before)
        monkeypatch.setattr(LayerChain, "run", limited)
        assert run_update(algorithm, batch).metrics == pytest.approx(expected.metrics, rel=2e-3, abs=1e-4)
        assert algorithm.train_state.splitter.parts == 2
