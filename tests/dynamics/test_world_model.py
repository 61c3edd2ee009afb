"""A world model learns to predict; the full gates are in tests/learning_gates."""

import pytest
from tests.dynamics.world_model_gate import quality, trained


@pytest.mark.slow
def test_a_world_model_predicts_a_pendulum() -> None:
    found = quality(trained("Pendulum-v1", 2_000, 220, lr=2e-3), "Pendulum-v1")
    assert found.reward_r2 > 0.7, found
    assert found.open_loop < 0.3, found
    assert found.return_correlation > 0.7, found
