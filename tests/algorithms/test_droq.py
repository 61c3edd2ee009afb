"""DroQ: masks beside each action, the same for both critics, and an actor like that of SAC."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rl4sys.algorithms import DroQConfig, SACConfig
from rl4sys.engine import UnsuitableActions
from rl4sys.networks import NETWORKS, NetworksConfig, UnsuitableNetwork

from .actor_critic import ASYMMETRIC
from .problems import problem, transitions


def test_masks_leave_out_the_given_share_and_keep_the_mean() -> None:
    algorithm = DroQConfig(dropout=0.25).build(problem(ASYMMETRIC))
    masks = algorithm.beside_action(10_000)
    assert [mask.shape for mask in masks] == [(10_000, width) for width in algorithm.widths]
    for mask in masks:
        assert sorted(mask.unique().tolist()) == pytest.approx([0.0, 4 / 3])
        assert float(mask.mean()) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(("dropout", "is_same"), [(0.0, True), (0.5, False)])
def test_only_dropout_makes_two_estimates_differ(dropout: float, is_same: bool) -> None:
    algorithm = DroQConfig(dropout=dropout).build(problem(ASYMMETRIC))
    batch = algorithm.train_state.tensors(transitions(problem(ASYMMETRIC)))
    first, second = (
        algorithm.critics(batch.observation, batch.action, *algorithm.beside_action(len(batch))) for _ in range(2)
    )
    assert first.shape == (2, len(batch))
    assert torch.equal(first, second) == is_same


def test_an_update_trains_critics_each_time_and_the_actor_after_the_delay() -> None:
    algorithm = DroQConfig(policy_delay=3).build(problem(ASYMMETRIC))
    batch = algorithm.train_state.tensors(transitions(problem(ASYMMETRIC)))
    updates = [algorithm.update(batch).metrics for _ in range(6)]
    assert ["actor_loss" in metrics for metrics in updates] == [False, False, True] * 2


def test_the_policy_is_that_of_sac() -> None:
    droq, sac = (config.build(problem(ASYMMETRIC)).policies for config in (DroQConfig(), SACConfig()))
    assert droq == sac


def test_what_it_cannot_learn_is_refused() -> None:
    with pytest.raises(UnsuitableActions, match="DroQ cannot choose discrete actions"):
        DroQConfig().build(problem())
    networks = NetworksConfig(critic=NETWORKS.parse({"type": "lstm"}))
    with pytest.raises(UnsuitableNetwork, match="are of type mlp"):
        DroQConfig().build(replace(problem(ASYMMETRIC), networks=networks))
