"""QR-DQN and TQC: values are means of quantiles, and only means travel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl4sys.algorithms import QRDQNConfig, TQCConfig
from rl4sys.config import ConfigError
from rl4sys.engine import ALGORITHMS, UnsuitableActions

from .actor_critic import ASYMMETRIC
from .problems import problem, transitions


def test_the_mean_of_the_quantiles_is_what_the_policy_carries() -> None:
    algorithm = QRDQNConfig(quantiles=7).build(problem())
    batch = algorithm.train_state.tensors(transitions(problem()))
    outputs = algorithm.network(batch.observation)
    quantiles = algorithm.quantiles(outputs)
    assert quantiles.shape == (len(batch), 3, 7)
    assert torch.allclose(quantiles.mean(-1), outputs[0], atol=1e-6)
    names = [tensor.name for tensor in algorithm.policies.explore.program.tensors]
    assert not any(name.startswith("spread") for name in names)


def test_quantiles_of_a_constant_return_meet_there() -> None:
    algorithm = QRDQNConfig(quantiles=5, gamma=0.0, lr=0.05).build(problem())
    batch = algorithm.train_state.tensors(transitions(problem()))
    batch.reward.fill_(2.0)
    for _ in range(300):
        algorithm.update(batch)
    quantiles = algorithm.quantiles(algorithm.network(batch.observation))
    taken = quantiles[torch.arange(len(batch)), batch.action]
    assert taken.detach().numpy() == pytest.approx(2.0, abs=0.2)


def test_targets_leave_out_the_highest_of_all_quantiles() -> None:
    algorithm = TQCConfig(quantiles=3, dropped=1).build(problem(ASYMMETRIC))
    batch = algorithm.train_state.tensors(transitions(problem(ASYMMETRIC)))
    next_q = torch.tensor([[[5.0, 1.0, 3.0]], [[2.0, 9.0, 4.0]]]).expand(2, len(batch), 3)
    target = algorithm.soft_target(batch, next_q, torch.full((len(batch),), 0.5))
    expected = batch.reward.numpy()[:, None] + batch.discount.numpy()[:, None] * (np.array([1, 2, 3, 4]) - 0.5)
    assert target.numpy() == pytest.approx(expected, rel=1e-5)


def test_what_makes_no_sense_with_quantiles_is_refused() -> None:
    with pytest.raises(ConfigError, match="dropped is 5; expected less than the 5 quantiles"):
        ALGORITHMS.parse({"name": "tqc", "quantiles": 5, "dropped": 5})
    with pytest.raises(ConfigError, match="dueling is for dqn"):
        ALGORITHMS.parse({"name": "qr_dqn", "dueling": True})
    with pytest.raises(UnsuitableActions, match="TQC cannot choose discrete actions"):
        TQCConfig().build(problem())
