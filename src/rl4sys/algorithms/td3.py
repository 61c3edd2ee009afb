"""Twin delayed deterministic policy gradient (arXiv:1802.09477)."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from rl4sys.algorithms.deterministic_actor import deterministic_actor, deterministic_policies
from rl4sys.algorithms.off_policy import OffPolicyConfig
from rl4sys.engine import Problem, TensorBatch, TrainState, Update, UpdateWork, register_algorithm
from rl4sys.networks import squared_error


@register_algorithm("td3")
class TD3Config(OffPolicyConfig):
    """Off-policy; continuous actions with finite bounds."""

    lr: float = Field(1e-3, gt=0)
    """Learning rate of the actor. Higher learns faster and is less stable."""
    exploration: Literal["gaussian", "ornstein_uhlenbeck"] = "gaussian"
    """Independent noise in every step, or correlated noise: smoother, for systems with inertia."""
    exploration_std: float = Field(0.1, ge=0)
    """Standard deviation of the noise, as a share of half the range of actions. More explores more."""
    exploration_theta: float = Field(0.15, gt=0, le=1)
    """Share by which Ornstein–Uhlenbeck noise returns to zero in each step. Less is correlated for longer."""
    policy_delay: int = Field(2, ge=1)
    """Updates of the critics per update of the actor and of all targets. More lets the critics settle."""
    target_noise: float = Field(0.2, ge=0)
    """Deviation of the noise on the target's action, as a share of half the range: smooths the critics over actions."""
    target_noise_clip: float = Field(0.5, ge=0)
    """Bound of that noise, in the same units."""
    ensemble: int = Field(2, ge=1)
    """Critics whose minimum makes the target. The actor maximises the first."""

    schedulable = ("lr", "critic_lr", "exploration_std", "target_noise")

    def work(self, buffer_size: int) -> UpdateWork:
        """With all critics."""
        return UpdateWork(self.updates_per_step, critics=self.ensemble)

    def build(self, problem: Problem) -> TD3:
        """The algorithm for one problem."""
        return TD3(self, problem)


class TD3:
    """Learns twin critics from the lower of their targets, and a deterministic actor less often."""

    def __init__(self, config: TD3Config, problem: Problem) -> None:
        action = problem.bounded_action("TD3")
        self.config = config
        theta = config.exploration_theta if config.exploration == "ornstein_uhlenbeck" else None
        self.policies, program = deterministic_policies(problem, action, theta)
        self.train_state = state = TrainState(problem, self.policies, config.gamma)
        self.actor = deterministic_actor(
            state, program, config.actor_settings(), config.exploration_std, config.learning_starts
        )
        self.critics = config.critics(state, problem, config.ensemble)

    def update(self, batch: TensorBatch) -> Update:
        """One step of the critics; every few steps also one of the actor and the targets (algorithm 1)."""
        config = self.config
        with torch.no_grad():
            next_action = torch.tanh(self.actor.target(batch.next_observation))
            noise = self.train_state.normal(*next_action.shape) * self.train_state.scheduled(
                "target_noise", config.target_noise
            )
            noise = noise.clamp(-config.target_noise_clip, config.target_noise_clip)
            next_action = (next_action + noise).clamp(-1.0, 1.0)
            next_q = self.critics.target(batch.next_observation, next_action).amin(0)
            target = batch.reward + batch.discount * next_q
        critic_loss, q, error = self.critics.minimize(self.critic_loss, batch, target)
        metrics = {"critic_loss": critic_loss, "q": q.mean()}
        if self.critics.optimizer.steps % config.policy_delay == 0:
            metrics["actor_loss"] = self.actor.minimize(self.actor_loss, batch)
            self.critics.polyak_update(config.polyak)
            self.actor.polyak_update(config.polyak)
        return Update(metrics, {"priority": error.abs().mean(0)})

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²], summed over critics."""
        q = self.critics(batch.observation, batch.action)
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def actor_loss(self, batch: TensorBatch) -> torch.Tensor:
        """−E[Q₁(s, π(s))]: the deterministic policy gradient through the first critic."""
        q: torch.Tensor = self.critics.first_member(batch.observation, torch.tanh(self.actor(batch.observation)))
        return -q.mean()
