"""Deep deterministic policy gradient (arXiv:1509.02971)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from rl4sys.algorithms.deterministic_actor import deterministic_actor, deterministic_policies
from rl4sys.algorithms.off_policy import OffPolicyConfig
from rl4sys.engine import Problem, TensorBatch, TrainState, Update, register_algorithm
from rl4sys.networks import squared_error


@register_algorithm("ddpg")
class DDPGConfig(OffPolicyConfig):
    """Off-policy; continuous actions with finite bounds."""

    lr: float = Field(1e-3, gt=0)
    """Learning rate of the actor. Higher learns faster and is less stable."""
    exploration: Literal["gaussian", "ornstein_uhlenbeck"] = "gaussian"
    """Independent noise in every step, or correlated noise: smoother, for systems with inertia."""
    exploration_std: float = Field(0.1, ge=0)
    """Standard deviation of the noise, as a share of half the range of actions. More explores more."""
    exploration_theta: float = Field(0.15, gt=0, le=1)
    """Share by which Ornstein–Uhlenbeck noise returns to zero in each step. Less is correlated for longer."""

    schedulable = ("lr", "critic_lr", "exploration_std")

    def build(self, problem: Problem) -> DDPG:
        """The algorithm for one problem."""
        return DDPG(self, problem)


class DDPG:
    """Learns one critic, and a deterministic actor that maximises it."""

    def __init__(self, config: DDPGConfig, problem: Problem) -> None:
        action = problem.bounded_action("DDPG")
        self.config = config
        theta = config.exploration_theta if config.exploration == "ornstein_uhlenbeck" else None
        self.policies, program = deterministic_policies(problem, action, theta)
        self.train_state = state = TrainState(problem, self.policies, config.gamma)
        self.actor = deterministic_actor(
            state, program, config.actor_settings(), config.exploration_std, config.learning_starts
        )
        self.critics = config.critics(state, problem, 1)

    def update(self, batch: TensorBatch) -> Update:
        """One step of the critic, then of the actor and the targets (algorithm 1)."""
        with torch.no_grad():
            next_action = torch.tanh(self.actor.target(batch.next_observation))
            target = batch.reward + batch.discount * self.critics.target(batch.next_observation, next_action)[0]
        critic_loss, q, error = self.critics.minimize(self.critic_loss, batch, target)
        actor_loss = self.actor.minimize(self.actor_loss, batch)
        self.critics.polyak_update(self.config.polyak)
        self.actor.polyak_update(self.config.polyak)
        return Update({"critic_loss": critic_loss, "q": q.mean(), "actor_loss": actor_loss}, {"priority": error.abs()})

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²] (eq. 4)."""
        q = self.critics(batch.observation, batch.action)[0]
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def actor_loss(self, batch: TensorBatch) -> torch.Tensor:
        """−E[Q(s, π(s))], the deterministic policy gradient (eq. 6)."""
        q: torch.Tensor = self.critics(batch.observation, torch.tanh(self.actor(batch.observation)))
        return -q.mean()
