from __future__ import annotations

import dataclasses

import pytest

from rl4sys.algorithms import ALGORITHMS, DDPGConfig, DQNConfig, SQLConfig, TD3Config, UnsuitableNetwork
from rl4sys.networks import MlpConfig, NetworkConfig, NetworksConfig, register_network
from rl4sys.policy import ProgramBuilder

from .problems import BOX, problem


@register_network("tests_gru")
class GruConfig(NetworkConfig):
    """A network that remembers."""

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """One gated recurrent unit."""
        return builder.gru(features, 4, f"{name}.memory")


MEMORY, NONE = GruConfig(), MlpConfig(hidden_dims=(4,))
CASES = {
    "td3's actor": (TD3Config(), NetworksConfig(actor=MEMORY, critic=NONE), "actor"),
    "td3's critic": (TD3Config(), NetworksConfig(actor=NONE, critic=MEMORY), "critic"),
    "ddpg": (DDPGConfig(), NetworksConfig(actor=MEMORY, critic=NONE), "actor"),
    "sql": (SQLConfig(), NetworksConfig(actor=MEMORY, critic=NONE), "actor"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_network_with_memory_is_refused_by_algorithms_that_learn_from_single_steps(case: str) -> None:
    config, networks, which = CASES[case]
    name = ALGORITHMS.name_of(config)
    expected = rf"^{name} cannot train .* \(network.{which}.type=tests_gru\); use .* or network.{which}.type=mlp\.$"
    with pytest.raises(UnsuitableNetwork, match=expected):
        config.build(dataclasses.replace(problem(BOX), networks=networks, algorithm=name))


def test_dqn_ignores_the_network_of_the_critic() -> None:
    DQNConfig().build(dataclasses.replace(problem(), networks=NetworksConfig(actor=NONE, critic=MEMORY)))
