"""TD3+BC (arXiv:2106.06860): TD3 on recorded data, whose actor also stays near the recorded actions."""

from __future__ import annotations

import torch
from pydantic import Field

from rl4sys.algorithms.td3 import TD3, TD3Config
from rl4sys.engine import Problem, TensorBatch, register_algorithm


@register_algorithm("td3_bc")
class TD3BCConfig(TD3Config):
    """Offline, from recorded data; continuous actions with finite bounds."""

    lr: float = Field(3e-4, gt=0)
    """Learning rate of the actor. Higher learns faster and is less stable."""
    value_weight: float = Field(2.5, ge=0)
    """Weight of values relative to imitation (α in the paper). More trusts the critics further from the data; 0 is
    behaviour cloning."""

    needs_data = True

    def build(self, problem: Problem) -> TD3BC:
        """The algorithm for one problem."""
        return TD3BC(self, problem)


class TD3BC(TD3):
    """TD3 with another loss of the actor."""

    config: TD3BCConfig

    def actor_loss(self, batch: TensorBatch) -> torch.Tensor:
        """E[(π(s) − a)² − λ Q₁(s, π(s))] with λ = α / E|Q₁| (eq. 3 and 5)."""
        action = torch.tanh(self.actor(batch.observation))
        q = self.critics.first_member(batch.observation, action)
        scale = self.config.value_weight / q.detach().abs().mean().clamp(min=1e-6)
        loss: torch.Tensor = (action - batch.action).square().mean() - scale * q.mean()
        return loss
