"""The previous action as an input of networks with memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from rl4sys.algorithms import PPO, DQNConfig, SACConfig, TD3Config, UnsuitableNetwork
from rl4sys.config import ConfigError, parse
from rl4sys.engine import advantage_streams
from rl4sys.engine.previous_action import PREVIOUS, TAKEN
from rl4sys.networks import NETWORKS, NetworksConfig

from .problems import BOX, DISCRETE, problem
from .test_recurrent_ppo import MEMORY, collected
from .test_recurrent_replay import PLAN, drawn
from .training import PPO as SETTINGS
from .training import experiment


def network(kind: str = "lstm", **settings: Any) -> dict[str, Any]:
    return {"type": kind, **MEMORY[kind], "previous_action": True, **settings}


@pytest.mark.parametrize("kind", MEMORY)
@pytest.mark.parametrize("action", ["discrete", "mixed"])
def test_unrolled_log_probs_are_those_that_were_recorded(kind: str, action: str) -> None:
    both = {"actor": network(kind), "critic": network(kind)}
    config = experiment({**SETTINGS, "gamma": 0.99}, "Recall", steps=512, env={"action": action}, network=both)
    ppo, batch = collected(config, rounds=3)
    assert isinstance(ppo, PPO)
    assert batch.carry[PREVIOUS].any()
    steps = advantage_streams(batch, ppo.critic, 0.99, 0.95, ppo.action)
    with torch.no_grad():
        found = ppo.likelihood(steps).log_prob
    torch.testing.assert_close(found, steps.log_prob, rtol=1e-4, atol=1e-5)
    assert np.isfinite(float(ppo.update(batch).metrics["value_loss"]))


@pytest.mark.parametrize(("config", "action"), [(DQNConfig(**PLAN), DISCRETE), (SACConfig(**PLAN), BOX)])
def test_what_is_computed_depends_on_the_action_before(config: Any, action: Any) -> None:
    algorithm, batch = drawn(config, action, network=NETWORKS.parse(network("lstm")))
    actor = algorithm.network if isinstance(config, DQNConfig) else algorithm.actor
    taken = batch.observation[TAKEN].clone()
    taken[:, 3] = -taken[:, 3] - 1.0
    outputs = [
        actor.unroll(batch.observation | {TAKEN: each}, batch.is_first, None)
        for each in (batch.observation[TAKEN], taken)
    ]
    first, second = (each if isinstance(each, torch.Tensor) else torch.cat(each, -1) for each in outputs)
    changed = (first != second).any(-1)
    assert not changed[:, :4].any()
    assert changed[:, 4].tolist() == (~batch.is_first[:, 4]).tolist()
    assert all(np.isfinite(float(value)) for value in algorithm.update(batch).metrics.values())


def test_an_algorithm_for_single_steps_refuses_it() -> None:
    both = NetworksConfig(actor=NETWORKS.parse(network()), critic=NETWORKS.parse({"type": "mlp"}))
    with pytest.raises(UnsuitableNetwork, match="td3 cannot train a network with memory"):
        TD3Config().build(replace(problem(BOX), networks=both, algorithm="td3"))


@pytest.mark.parametrize("kind", ["mlp", "cnn", "mixed"])
def test_a_network_without_memory_has_no_such_setting(kind: str) -> None:
    with pytest.raises(ConfigError, match="previous_action: unknown key"):
        NETWORKS.parse({"type": kind, "previous_action": True} | ({"encoders": {"a": {}}} if kind == "mixed" else {}))


def test_an_encoder_does_not_read_it() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.previous_action: set it for the network around the encoder"):
        parse(NetworksConfig, {"actor": {"type": "lstm", "encoder": {"type": "gru", "previous_action": True}}})
