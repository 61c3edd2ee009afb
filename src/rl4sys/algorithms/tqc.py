"""Truncated quantile critics (arXiv:2005.04269): SAC whose critics learn distributions, without their upper tails."""

from __future__ import annotations

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms.sac import SAC, SACConfig
from rl4sys.engine import Problem, TensorBatch, register_algorithm
from rl4sys.networks import NetworksConfig
from rl4sys.networks.quantiles import quantile_huber


@register_algorithm("tqc")
class TQCConfig(SACConfig):
    """Off-policy, maximum entropy; continuous actions with finite bounds."""

    quantiles: int = Field(25, ge=2)
    """Quantiles of the return that each critic learns."""
    dropped: int = Field(2, ge=0)
    """Highest quantiles to leave out of targets, for each critic, counted over all critics together. More counters
    overestimation more, and underestimates more."""

    imitates = False

    @model_validator(mode="after")
    def _check_dropped(self) -> TQCConfig:
        if self.dropped >= self.quantiles:
            raise ValueError(f"dropped is {self.dropped}; expected less than the {self.quantiles} quantiles")
        if self.actor_objective != "min" or self.target_subset is not None:
            raise ValueError("actor_objective and target_subset are for sac: here all quantiles are pooled")
        return self

    @property
    def critic_quantiles(self) -> int:
        """All of them."""
        return self.quantiles

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """Never: its networks have no memory."""
        return False

    def build(self, problem: Problem) -> TQC:
        """The algorithm for one problem."""
        problem.bounded_action("TQC")
        return TQC(self, problem)


class TQC(SAC):
    """SAC with other targets, another loss of the critics, and an actor that maximises the mean of all quantiles."""

    config: TQCConfig

    def soft_target(self, batch: TensorBatch, next_q: torch.Tensor, entropy_cost: torch.Tensor) -> torch.Tensor:
        """y [B, m] for each of the lowest of all pooled quantiles (eq. 10 and 11)."""
        pooled = next_q.transpose(0, 1).flatten(1).sort(-1).values
        lowest = pooled[:, : pooled.shape[-1] - self.config.dropped * self.config.ensemble]
        return batch.reward.unsqueeze(-1) + batch.discount.unsqueeze(-1) * (lowest - entropy_cost.unsqueeze(-1))

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[Eᵢ ρ(y − θᵢ(s, a))], summed over critics (eq. 8)."""
        quantiles = self.critics(batch.observation, batch.action)
        losses = quantile_huber(quantiles, target) / self.config.quantiles
        q = quantiles.mean(-1)
        return (losses.sum(0) * batch.weight).mean(), q, q.detach() - target.mean(-1)

    def actor_value(self, q: torch.Tensor) -> torch.Tensor:
        """The mean over critics and quantiles (eq. 12)."""
        return q.mean((0, -1))
