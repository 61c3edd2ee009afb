"""A world model learns to predict; the full gates are in tests/learning_gates."""

import gymnasium
import numpy as np
import pytest
import torch
from tests.dynamics.world_model_gate import quality, random_batches, trained

from rl4sys.dynamics import evidence
from rl4sys.policy import DiscreteAction


@pytest.mark.slow
def test_a_world_model_predicts_a_pendulum() -> None:
    found = quality(trained("Pendulum-v1", 2_000, 220, lr=2e-3), "Pendulum-v1")
    assert found.reward_r2 > 0.7, found
    assert found.open_loop < 0.3, found
    assert found.return_correlation > 0.7, found


def test_a_world_model_sees_every_pole_that_has_fallen() -> None:
    """An episode of CartPole-v1 terminates beyond 12 degrees or 2.4 units, and nowhere else."""
    (batch,) = random_batches(gymnasium.make("CartPole-v1"), 1_000, 1, 0, 16, 40)
    data = evidence(batch, DiscreteAction(2), 1, torch.device("cpu"))
    place, _, angle, _ = data.observation["observation"].abs().unbind(-1)
    fallen = (angle > 12 * 2 * np.pi / 360) | (place > 2.4)
    # Of a sequence's first row it is not known what led there.
    known = torch.ones_like(fallen)
    known[:, 0] = False
    assert fallen[known].sum() > 10
    assert torch.equal((data.continues == 0)[known], fallen[known])
    assert data.is_last[fallen].all()
    assert data.weight[fallen & known].all()
