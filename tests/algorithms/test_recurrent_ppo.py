"""PPO with networks that have memory."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import PPO
from rl4sys.engine import AdvantageStreams, advantage_streams
from rl4sys.experience import Sequences
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.networks import MlpConfig, NetworksConfig
from rl4sys.replay import OnceFresh, TrajectoryBuffer

from .training import PPO as SETTINGS
from .training import components, experiment, greedy_return

MEMORY = {
    "lstm": {"units": 8},
    "gru": {"units": 8, "layers": 2},
    "transformer": {"units": 8, "heads": 2, "window": 12},
}


def _experiment(kind: str = "lstm", name: str = "Recall", **sections: Any) -> ExperimentConfig:
    network = {"actor": {"type": kind, **MEMORY[kind]}, "critic": {"type": kind, **MEMORY[kind]}}
    return experiment({**SETTINGS, "gamma": 0.99}, name, steps=512, network=network, **sections)


def collected(config: ExperimentConfig, rounds: int) -> tuple[PPO, Sequences]:
    """The algorithm, and the last of several rollouts, each of which begins in the middle of episodes."""
    parts = components(config)
    learner = parts.learner()
    source = parts.source(learner)
    for _ in range(rounds):
        segments = source.collect(learner.store.newest).segments
    source.close()
    buffer = TrajectoryBuffer(OnceFresh(steps=1, max_age=0))
    for segment in segments:
        buffer.add(segment)
    (batch,) = buffer.due()
    assert isinstance(learner.algorithm, PPO)
    return learner.algorithm, batch


def _streams(ppo: PPO, batch: Sequences) -> AdvantageStreams:
    return advantage_streams(batch, ppo.critic, 0.99, 0.95)


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize(
    ("name", "env"),
    [("Recall", {}), ("Identity", {"masked": True, "length": 20}), ("Recall", {"action": "mixed"})],
    ids=["choices", "masked choices", "mixed actions"],
)
def test_unrolled_log_probs_are_those_that_were_recorded(kind: str, name: str, env: dict[str, Any]) -> None:
    ppo, batch = collected(_experiment(kind, name, env=env), rounds=3)
    assert not batch.is_first[:, 0].all()
    assert any(memory.any() for memory in batch.carry.values())
    steps = _streams(ppo, batch)
    with torch.no_grad():
        found = ppo.likelihood(steps).log_prob
    torch.testing.assert_close(found, steps.log_prob, rtol=1e-4, atol=1e-5)


def test_a_pass_contains_every_stream_once() -> None:
    ppo, batch = collected(_experiment(), rounds=1)
    steps = _streams(ppo, batch)
    parts = list(steps.minibatches(64, np.random.default_rng(0)))
    assert [len(part) for part in parts] == [2, 2, 2, 2]
    returns = torch.cat([part.returns for part in parts])
    torch.testing.assert_close(returns.sort().values, steps.returns.sort().values)


def test_a_minibatch_is_no_longer_than_its_longest_stream() -> None:
    ppo, batch = collected(_experiment(), rounds=1)
    acted = batch.acted.copy()
    acted[0, 5:] = False
    steps = _streams(ppo, dataclasses.replace(batch, acted=acted))
    assert steps[:1].streams.is_first.shape == (1, 5)


def test_a_batch_in_parts_has_the_gradient_of_the_whole() -> None:
    ppo, batch = collected(_experiment(), rounds=1)
    acted = batch.acted.copy()
    acted[0, 5:] = False
    steps, optimizer = _streams(ppo, dataclasses.replace(batch, acted=acted)), ppo.actor.optimizer
    optimizer.differentiate(ppo.joint_loss, steps)
    whole = optimizer.parameters.gradient.clone()
    ppo.train_state.splitter.parts = 4
    optimizer.differentiate(ppo.joint_loss, steps)
    torch.testing.assert_close(optimizer.parameters.gradient, whole, rtol=1e-4, atol=1e-6)


def test_the_critic_remembers_if_only_the_actor_is_given_memory() -> None:
    both = NetworksConfig.model_validate({"actor": {"type": "lstm", "units": 5}})
    assert both.critic == both.actor
    apart = NetworksConfig.model_validate({"actor": {"type": "lstm"}, "critic": {"type": "mlp"}})
    assert apart.critic == MlpConfig()


@pytest.mark.parametrize("which", ["actor", "critic"])
def test_one_of_the_two_networks_may_have_memory(which: str) -> None:
    network: dict[str, Any] = {"actor": {"type": "mlp"}, "critic": {"type": "mlp"}}
    config = experiment(SETTINGS, "Recall", steps=512, network=network | {which: {"type": "lstm"}})
    ppo, batch = collected(config, rounds=2)
    assert np.isfinite(float(ppo.update(batch).metrics["value_loss"]))


def test_ppo_remembers_a_cue() -> None:
    env, network = {"shortest": 1, "longest": 4}, {"actor": {"type": "lstm", "units": 16}, "critic": {"type": "lstm"}}
    config = experiment({**SETTINGS, "gamma": 0.95}, "Recall", steps=8_000, env=env, network=network)
    assert greedy_return(config) >= 0.95
