from __future__ import annotations

import dataclasses

import pytest

from rl4sys.algorithms import DQNConfig, PPOConfig, UnsuitableNetwork
from rl4sys.networks import MlpConfig, NetworkConfig, NetworksConfig, register_network
from rl4sys.policy import ProgramBuilder

from .problems import problem


@register_network("tests_gru")
class GruConfig(NetworkConfig):
    """A network that remembers."""

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """One gated recurrent unit."""
        return builder.gru(features, 4, f"{name}.memory")


MEMORY, NONE = GruConfig(), MlpConfig(hidden_dims=(4,))
CASES = {
    "ppo": (PPOConfig(), NetworksConfig(actor=MEMORY, critic=NONE), "actor"),
    "ppo's critic": (PPOConfig(), NetworksConfig(actor=NONE, critic=MEMORY), "critic"),
    "dqn": (DQNConfig(), NetworksConfig(actor=MEMORY, critic=NONE), ""),
    "dueling dqn": (DQNConfig(dueling=True), NetworksConfig(actor=MEMORY, critic=NONE), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_network_with_memory_is_refused_by_algorithms_that_learn_from_single_steps(case: str) -> None:
    config, networks, which = CASES[case]
    with pytest.raises(UnsuitableNetwork, match=rf"memory \({which}.*memory\.hidden\).*such as type: mlp\.$"):
        config.build(dataclasses.replace(problem(), networks=networks))


def test_dqn_ignores_the_network_of_the_critic() -> None:
    DQNConfig().build(dataclasses.replace(problem(), networks=NetworksConfig(actor=NONE, critic=MEMORY)))
