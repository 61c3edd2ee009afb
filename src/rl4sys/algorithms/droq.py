"""DroQ (arXiv:2110.02034): SAC with many updates per step, whose critics have dropout and layer normalisation."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from rl4sys.algorithms.sac import SAC, SACConfig
from rl4sys.engine import Problem, TrainState, register_algorithm
from rl4sys.experience import ArraySpec
from rl4sys.networks import MlpConfig, Network, NetworksConfig, UnsuitableNetwork
from rl4sys.policy import ProgramBuilder

_ACTION = "critic.action"


@register_algorithm("droq")
class DroQConfig(SACConfig):
    """Off-policy, maximum entropy, for few steps of slow environments; continuous actions with finite bounds."""

    dropout: float = Field(0.01, ge=0, lt=1)
    """Share of the hidden units of a critic that are left out of each estimate. More regularises more; the paper has
    0.01 for most tasks and 0.1 for the largest one."""
    updates_per_step: float = Field(20.0, gt=0)
    """Updates of the critics for each environment step, over all environments. More learn more from the same data, and
    take time."""
    policy_delay: int = Field(20, ge=1)
    """Updates of the critics per update of the actor and the temperature; as `updates_per_step`, one for each step."""
    actor_objective: Literal["min", "mean"] = "mean"
    """Whether the actor maximises the minimum over the critics or their mean (the paper)."""

    imitates = False

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """Never: its networks have no memory."""
        return False

    def build(self, problem: Problem) -> DroQ:
        """The algorithm for one problem."""
        problem.bounded_action("DroQ")
        return DroQ(self, problem)

    def critics(self, state: TrainState, problem: Problem, members: int, quantiles: int = 1) -> Network:
        """Per hidden layer: linear, dropout, layer normalisation, activation (section 3); the rest is as in SAC."""
        network = problem.networks.critic
        if not isinstance(network, MlpConfig):
            raise UnsuitableNetwork("network.critic.type: the critics of DroQ are of type mlp; choose it, or use sac")
        builder = ProgramBuilder(problem.observation)
        features = builder.features(standardize=problem.standardize)
        action = ArraySpec(_ACTION, "float32", (problem.bounded_action("DroQ").size,))
        register = builder.joined([features, builder.input(action)])
        masks = [f"critic.mask.{number}" for number in range(len(network.hidden_dims))]
        for number, (mask, width) in enumerate(zip(masks, network.hidden_dims, strict=True)):
            register = builder.linear(register, width, f"critic.{number}")
            register = builder.multiply(register, builder.input(ArraySpec(mask, "float32", (width,))))
            register = builder.layer_norm(register, f"critic.{number}.norm")
            register = builder.activation(register, network.activation)
        value = builder.linear(register, 1, "critic.value")
        return state.network(
            "critics",
            builder.program(),
            [value],
            self.critic_settings(),
            members=members,
            extra_inputs=[_ACTION, *masks],
            target=True,
            squeeze=True,
            fused=True,
        )


class DroQ(SAC):
    """SAC whose critics see a dropout mask beside each action. Both critics share it, and each row has its own."""

    config: DroQConfig

    def __init__(self, config: DroQConfig, problem: Problem) -> None:
        super().__init__(config, problem)
        network = problem.networks.critic
        self.widths = network.hidden_dims if isinstance(network, MlpConfig) else ()

    def beside_action(self, rows: int) -> tuple[torch.Tensor, ...]:
        """A mask for each hidden layer: 0 for units that are left out, and such that the mean of all is 1."""
        kept = 1.0 - self.config.dropout
        return tuple((self.train_state.random(rows, width) < kept).float() / kept for width in self.widths)
