"""Gates for what world models predict, after minutes of training on random actions (`make test-learning`)."""

import pytest
from tests.dynamics.world_model_gate import quality, trained


@pytest.mark.learning
def test_a_world_model_predicts_a_pendulum() -> None:
    found = quality(trained("Pendulum-v1", 5_000, 600), "Pendulum-v1")
    print(f"\nPendulum-v1 after 600 updates: {found}")
    assert found.reward_r2 >= 0.95
    assert found.open_loop <= 0.2
    assert found.return_correlation >= 0.9


@pytest.mark.learning
def test_a_world_model_predicts_when_a_pole_falls() -> None:
    found = quality(trained("CartPole-v1", 5_000, 600), "CartPole-v1")
    print(f"\nCartPole-v1 after 600 updates: {found}")
    assert found.continue_auc >= 0.97
