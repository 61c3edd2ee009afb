"""Quantile-regression DQN (arXiv:1710.10044): learns the distribution of returns, and acts by its mean."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.dqn import DQN, DQNConfig, value_policies
from rl4sys.engine import Policies, Problem, TensorBatch, Update, register_algorithm
from rl4sys.networks import NetworksConfig, UnsuitableNetwork, masked
from rl4sys.networks.quantiles import quantile_huber
from rl4sys.policy import Program, output_size


@register_algorithm("qr_dqn")
class QRDQNConfig(DQNConfig):
    """Off-policy; discrete actions."""

    quantiles: int = Field(50, ge=2)
    """Quantiles of the return of each action. More describe its distribution better, and take longer."""

    @model_validator(mode="after")
    def _check_dueling(self) -> QRDQNConfig:
        if self.dueling:
            raise ValueError("dueling is for dqn: here mean and spread of the values are apart already")
        return self

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """Never: its networks have no memory."""
        return False

    def build(self, problem: Problem) -> QRDQN:
        """The algorithm for one problem."""
        return QRDQN(self, problem)


class QRDQN(DQN):
    """Learns quantiles of the return of each action: their mean, and by how much each differs from it.

    So the policy consists of the means only, which are all that it acts by.
    """

    config: QRDQNConfig

    def declare(self) -> tuple[Policies, Program, list[str]]:
        """Policies and outputs of DQN, and the spread of the quantiles as one more output that does not travel."""
        if self.problem.count is not None:
            raise UnsuitableNetwork("qr_dqn needs a fixed number of choices. Use algorithm.name=dqn for candidates.")
        spread = "spread", output_size(self.problem.action) * self.config.quantiles
        return value_policies(self.problem, "QR-DQN", spread)

    def quantiles(self, outputs: Any) -> torch.Tensor:
        """θ(s, ·) [B, k, n] from the network's outputs; their mean over n is Q."""
        mean, spread = outputs
        spread = spread.unflatten(-1, (-1, self.config.quantiles))
        return mean.unsqueeze(-1) + spread - spread.mean(-1, keepdim=True)  # type: ignore[no-any-return]

    def q_values(self, outputs: Any) -> torch.Tensor:
        """Q(s, ·) [B, k] from the network's outputs."""
        return outputs[0]  # type: ignore[no-any-return]  # networks are not typed

    def update(self, batch: TensorBatch) -> Update:
        """One step on the quantile regression loss (algorithm 1)."""
        config = self.config
        with torch.no_grad():
            following = self.network.target(batch.next_observation)
            chosen_by = self.network(batch.next_observation) if config.double else following
            allowed = self.problem.allowed(batch.next_observation)
            best = masked(self.q_values(chosen_by), allowed).argmax(-1)
            target = batch.reward.unsqueeze(-1) + batch.discount.unsqueeze(-1) * _of(self.quantiles(following), best)
        loss, q, error = self.network.minimize(self.loss, batch, target)
        if self.network.optimizer.steps % config.target_update_interval == 0:
            self.network.polyak_update(config.polyak)
        metrics = {"loss": loss, "q": q.mean(), "gradient_norm": self.network.optimizer.gradient_norm}
        return Update(metrics, batch.feedback(error))

    def loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[w · Σᵢ Eⱼ ρ(yⱼ − θᵢ(s, a))]."""
        taken = _of(self.quantiles(self.network(batch.observation)), batch.action)
        loss = (quantile_huber(taken, target) * batch.weight).mean()
        q = taken.mean(-1)
        return loss, q, q.detach() - target.mean(-1)


def _of(quantiles: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """The quantiles [B, n] of one action of each row."""
    return quantiles[torch.arange(len(action), device=action.device), action]
