"""Implicit Q-learning (arXiv:2110.06169): learns from recorded data, and never asks for values of other actions."""

from __future__ import annotations

import torch
from pydantic import Field

from rl4sys.algorithms.deterministic_actor import deterministic_actor, deterministic_policies
from rl4sys.algorithms.off_policy import OffPolicyConfig
from rl4sys.engine import Problem, TensorBatch, TrainState, Update, UpdateWork, register_algorithm
from rl4sys.networks import squared_error

_CRITICS = 2


@register_algorithm("iql")
class IQLConfig(OffPolicyConfig):
    """Offline, from recorded data; continuous actions with finite bounds."""

    expectile: float = Field(0.7, gt=0, lt=1)
    """How far the value of a state is that of its best recorded actions: 0.5 is their mean, near 1 their maximum."""
    advantage_weight: float = Field(3.0, ge=0)
    """Inverse temperature of the actor (β in the paper): more follows only the better actions, 0 all of them alike."""
    max_weight: float = Field(100.0, gt=0)
    """Upper clip of the weight of an action."""

    needs_data = True

    def work(self, buffer_size: int) -> UpdateWork:
        """With both critics and the value network."""
        return UpdateWork(self.updates_per_step, critics=_CRITICS + 1)

    def build(self, problem: Problem) -> IQL:
        """The algorithm for one problem."""
        return IQL(self, problem)


class IQL:
    """Learns values by expectile regression, and an actor by weighted regression on the recorded actions."""

    def __init__(self, config: IQLConfig, problem: Problem) -> None:
        action = problem.bounded_action("IQL")
        self.config = config
        self.policies, program = deterministic_policies(problem, action, None)
        self.train_state = state = TrainState(problem, self.policies, config.gamma)
        self.actor = deterministic_actor(state, program, config.actor_settings(), 0.0, 0, target=False)
        self.critics = config.critics(state, problem, _CRITICS)
        program, value = problem.value_program()
        self.value = state.network("value", program, [value], config.critic_settings(), squeeze=True)

    def update(self, batch: TensorBatch) -> Update:
        """One step of value, critics and actor; then the targets (algorithm 1)."""
        config = self.config
        with torch.no_grad():
            q = self.critics.target(batch.observation, batch.action).amin(0)
            target = batch.reward + batch.discount * self.value(batch.next_observation)
        value_loss, value = self.value.minimize(self.value_loss, batch, q)
        critic_loss, _, error = self.critics.minimize(self.critic_loss, batch, target)
        weight = (config.advantage_weight * (q - value)).exp().clamp(max=config.max_weight)
        actor_loss = self.actor.minimize(self.actor_loss, batch, weight)
        self.critics.polyak_update(config.polyak)
        metrics = {"value_loss": value_loss, "critic_loss": critic_loss, "actor_loss": actor_loss, "q": q.mean()}
        return Update(metrics, {"priority": error.abs().mean(0)})

    def value_loss(self, batch: TensorBatch, q: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[|τ − 1[u < 0]| u²] with u = Q(s, a) − V(s) (eq. 5)."""
        value = self.value(batch.observation)
        gap = q - value
        share = torch.where(gap < 0, 1.0 - self.config.expectile, self.config.expectile)
        return (share * gap.square()).mean(), value

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²], summed over critics (eq. 6)."""
        q = self.critics(batch.observation, batch.action)
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def actor_loss(self, batch: TensorBatch, weight: torch.Tensor) -> torch.Tensor:
        """E[exp(β A) (π(s) − a)²]: eq. 7 for a deterministic policy."""
        error = (torch.tanh(self.actor(batch.observation)) - batch.action).square().sum(-1)
        loss: torch.Tensor = (weight * error).mean()
        return loss
