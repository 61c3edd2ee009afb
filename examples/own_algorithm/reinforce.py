"""REINFORCE with a learned baseline (Williams, Machine Learning 8, 1992): a whole algorithm in one file.

Name this file under `plugins:` in a config, and `algorithm: {name: reinforce}` works like the built-in ones.
"""

from __future__ import annotations

import torch
from pydantic import Field

from rl4sys.algorithms import (
    AdvantageBatch,
    AlgorithmConfig,
    Policies,
    Problem,
    TrainState,
    Update,
    advantage_batch,
    register_algorithm,
)
from rl4sys.experience import Sequences
from rl4sys.networks import OptimizerSettings, action_likelihood
from rl4sys.policy import Head, ProgramBuilder, output_size
from rl4sys.replay import OnceFresh


@register_algorithm("reinforce")
class ReinforceConfig(AlgorithmConfig):
    """On-policy; discrete and multi-discrete actions."""

    lr: float = Field(5e-3, gt=0)
    """Learning rate. Higher learns faster and is less stable."""
    entropy_coef: float = Field(0.01, ge=0)
    """Bonus for entropy. Higher explores longer."""
    max_grad_norm: float = Field(0.5, gt=0)
    """Longer gradients are scaled down to this norm."""

    buffers = ("trajectory",)

    def build(self, problem: Problem) -> Reinforce:
        """The algorithm for one problem."""
        return Reinforce(self, problem)

    def pace(self, buffer_size: int) -> OnceFresh:
        """Each batch once, and only from the newest policy: REINFORCE does not correct for age."""
        return OnceFresh(buffer_size, max_age=0)


class Reinforce:
    """Makes actions more likely in proportion to how much their return exceeds the baseline."""

    def __init__(self, config: ReinforceConfig, problem: Problem) -> None:
        self.config, self.problem = config, problem
        builder = ProgramBuilder(problem.observation)
        logits = builder.linear(problem.actor_body(builder), output_size(problem.action), "actor.action")
        program = builder.program()
        explore, exploit = (Head(kind, (logits,), mask=problem.mask) for kind in ("categorical", "deterministic"))
        self.policies = Policies.over(problem.action, program, explore, exploit)
        self.train_state = TrainState(problem, self.policies)
        settings = OptimizerSettings(config.lr, max_grad_norm=config.max_grad_norm)
        self.actor = self.train_state.network("actor", program, [logits], settings)
        critic, value = problem.value_program()
        self.baseline = self.train_state.network("baseline", critic, [value], settings, squeeze=True)

    def update(self, batch: Sequences) -> Update:
        """One step of the policy gradient, and one of the baseline."""
        # λ = 1: whole returns, with the baseline's prediction only for what lies beyond the data.
        steps = advantage_batch(batch, self.baseline, self.config.gamma, gae_lambda=1.0)
        policy_loss, entropy = self.actor.minimize(self.policy_loss, steps)
        baseline_loss = self.baseline.minimize(self.baseline_loss, steps)
        return Update({"policy_loss": policy_loss, "entropy": entropy, "baseline_loss": baseline_loss}, {})

    def policy_loss(self, batch: AdvantageBatch) -> tuple[torch.Tensor, ...]:
        """−E[log π(a | s) · (G − b(s))] minus the entropy bonus; then the entropy."""
        logits, allowed = self.actor(batch.observation), self.problem.allowed(batch.observation)
        log_prob, entropy = action_likelihood(self.problem.action, logits, batch.action, allowed)
        return -(log_prob * batch.advantage + self.config.entropy_coef * entropy).mean(), entropy.mean()

    def baseline_loss(self, batch: AdvantageBatch) -> torch.Tensor:
        """E[½ (b(s) − G)²]."""
        return 0.5 * (self.baseline(batch.observation) - batch.returns).square().mean()
