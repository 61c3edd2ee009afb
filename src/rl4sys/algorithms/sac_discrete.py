"""Soft actor-critic for one discrete action (arXiv:1910.07207): expectations are sums over actions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from rl4sys.engine import ImitationConfig, IncumbentRows, Policies, Problem, TensorBatch, Update, fit_actor_and_critics
from rl4sys.experience import Sequences
from rl4sys.networks import TensorMap, masked, smoothed_log_prob, squared_error
from rl4sys.policy import DiscreteAction, Program, ProgramBuilder
from rl4sys.policy.policy_spec import HeadKind

if TYPE_CHECKING:
    from rl4sys.algorithms.sac import SACConfig

_LAST = "actor.action"
_HEADS: tuple[HeadKind, HeadKind] = ("categorical", "deterministic")


class DiscreteSAC:
    """Learns a categorical policy; masked actions are excluded from every expectation."""

    def __init__(self, config: SACConfig, problem: Problem) -> None:
        self.config, self.problem = config, problem
        self.policies, program = choosing_policies(problem)
        self.train_state = state = config.train_state(problem, self.policies)
        self.actor = state.network(
            "actor", program, self.policies.explore.head.inputs, config.actor_settings(), fused=True
        )
        self.critics = config.critics(state, problem, config.ensemble)
        self.log_alpha = config.log_alpha(state)
        # Uniform actions until learning starts.
        state.zero_layer(_LAST, config.starts_randomly)

    def update(self, batch: TensorBatch) -> Update:
        """One step of critics, actor and temperature (algorithm 1)."""
        config, state, alpha = self.config, self.train_state, self.alpha()
        with torch.no_grad():
            log_probs, allowed = self.log_probs(batch.next_outputs(self.actor), batch.next_observation)
            next_q = batch.next_target_outputs(self.critics)
            if config.target_subset is not None:
                next_q = next_q[state.permutation(config.ensemble)[: config.target_subset]]
            next_value = expectation(log_probs, next_q.amin(0) - alpha * log_probs, allowed)
            target = batch.reward + batch.discount * batch.at_next(next_value)
        critic_loss, q, error = self.critics.minimize(self.critic_loss, batch, target)
        metrics = {"critic_loss": critic_loss, "q": q.mean(), "temperature": alpha}
        if self.critics.optimizer.steps % config.policy_delay == 0:
            actor_loss, entropy, surplus = self.actor.minimize(self.actor_loss, batch)
            metrics |= {"actor_loss": actor_loss, "entropy": entropy.mean()}
            if config.temperature == "auto":
                self.log_alpha.minimize(self.temperature_loss, surplus)
        self.critics.polyak_update(config.polyak)
        return Update(metrics, batch.feedback(error.abs().mean(0)))

    def alpha(self) -> torch.Tensor:
        """The temperature."""
        return self.train_state.scheduled("temperature", self.log_alpha.value.exp())

    def critic_loss(self, batch: TensorBatch, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """E[½ (Q(s, a) − y)²], summed over critics (eq. 4)."""
        every = batch.outputs(self.critics)
        q = every.gather(-1, batch.action.expand(every.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        q, target = batch.rows(q), batch.rows(target)
        return squared_error(q, target, batch.weight), q, q.detach() - target

    def actor_loss(self, batch: TensorBatch) -> tuple[torch.Tensor, ...]:
        """E[Σ π(a | s) (α log π(a | s) − Q(s, a))] (eq. 12); also entropies, and by how much they exceed the target."""
        log_probs, allowed = self.log_probs(batch.outputs(self.actor), batch.observation)
        with torch.no_grad():
            q = batch.outputs(self.critics)
            value = q.amin(0) if self.config.actor_objective == "min" else q.mean(0)
        loss = batch.rows(expectation(log_probs, self.alpha() * log_probs - value, allowed)).mean()
        with torch.no_grad():
            entropy = -expectation(log_probs, log_probs, allowed)
            target = self.target_entropy(value.shape[-1], allowed)
            surplus = entropy - self.train_state.scheduled("target_entropy", target)
            return loss, batch.rows(entropy), batch.rows(surplus)

    def imitate(self, batch: Sequences, plan: ImitationConfig) -> Update:
        """Fit the actor to decisions of the incumbent, and the critics to the λ-returns that followed them."""
        rows = self.train_state.incumbent_rows(batch, plan, self.value)
        return fit_actor_and_critics(rows, plan, self.actor, self.critics, self.imitation_loss, self.return_loss)

    def value(self, observation: TensorMap) -> torch.Tensor:
        """Σ π(a | s) min Q(s, a)."""
        log_probs, allowed = self.log_probs(self.actor(observation), observation)
        return expectation(log_probs, self.critics(observation).amin(0), allowed)

    def imitation_loss(self, batch: IncumbentRows, floor: float) -> torch.Tensor:
        """−E[log π(a | s)], with a floor under the probability of every allowed action."""
        allowed = self.problem.allowed(batch.observation)
        return -smoothed_log_prob(self.actor(batch.observation), batch.action, allowed, floor).mean()

    def return_loss(self, batch: IncumbentRows) -> torch.Tensor:
        """E[½ (Q(s, a) − R)²], summed over critics."""
        every = self.critics(batch.observation)
        q = every.gather(-1, batch.action.expand(every.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        return squared_error(q, batch.returns, torch.ones_like(batch.returns))

    def temperature_loss(self, surplus: torch.Tensor) -> torch.Tensor:
        """E[log α (entropy − target entropy)] (eq. 11, by the logarithm of α)."""
        return (self.log_alpha.value * surplus).mean()

    def target_entropy(self, actions: int, allowed: torch.Tensor | None) -> torch.Tensor | float:
        """The entropy that the temperature aims at: one number, or [B] where masks differ."""
        config = self.config
        if config.target_entropy is not None:
            return config.target_entropy
        if allowed is None:
            return config.entropy_fraction * math.log(actions)
        return config.entropy_fraction * allowed.sum(-1).clamp(min=1).log()

    def log_probs(self, scores: torch.Tensor, observation: TensorMap) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Log-probabilities of all actions [B, k] from the actor's scores, and the mask, if there is one."""
        allowed = self.problem.allowed(observation)
        return F.log_softmax(masked(scores, allowed), dim=-1), allowed


def expectation(log_probs: torch.Tensor, values: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Σ π · value [B] over the allowed actions; masked ones count for nothing, however large their logarithm."""
    if allowed is not None:
        # Before the product: an infinite value would make its gradient 0 · ∞.
        values = torch.where(allowed, values, 0.0)
    return (log_probs.exp() * values).sum(-1)


def choosing_policies(problem: Problem) -> tuple[Policies, Program]:
    """The two policies, and the program to train."""
    assert isinstance(problem.action, DiscreteAction)
    builder = ProgramBuilder(problem.observation)
    logits = problem.actor_scores(builder)
    program = builder.program()
    explore, exploit = (problem.choosing_head(kind, (logits,)) for kind in _HEADS)
    return Policies.over(problem.action, program, explore, exploit), program
