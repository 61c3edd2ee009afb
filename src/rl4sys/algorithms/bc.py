"""Behaviour cloning: supervised learning of recorded decisions."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field

from rl4sys.algorithms.deterministic_actor import deterministic_actor, deterministic_policies
from rl4sys.algorithms.sac_discrete import choosing_policies
from rl4sys.engine import AlgorithmConfig, Problem, TensorBatch, TrainState, Update, register_algorithm
from rl4sys.networks import OptimizerSettings, masked
from rl4sys.policy import DiscreteAction
from rl4sys.replay import Ratio


@register_algorithm("bc")
class BCConfig(AlgorithmConfig):
    """Offline, from recorded data; one discrete choice, or continuous actions with finite bounds."""

    lr: float = Field(1e-3, gt=0)
    """Learning rate. Higher learns faster and is less stable."""
    batch_size: int = Field(256, ge=1)
    """Decisions per update. More give less noisy gradients and slower updates."""
    updates_per_step: float = Field(1.0, gt=0)
    """Updates for each step of data that is read."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps of data that are read before learning starts."""
    max_grad_norm: float | None = Field(None, gt=0)
    """If set, longer gradients are scaled down to this norm."""

    buffers = ("uniform",)
    needs_data = True

    def build(self, problem: Problem) -> BC:
        """The algorithm for one problem."""
        return BC(self, problem)

    def pace(self, buffer_size: int) -> Ratio:
        """A fixed number of updates for each step."""
        return Ratio(self.updates_per_step, self.learning_starts, self.batch_size)

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size


class BC:
    """Fits a policy to what was done."""

    def __init__(self, config: BCConfig, problem: Problem) -> None:
        self.problem, self.is_choice = problem, isinstance(problem.action, DiscreteAction)
        settings = OptimizerSettings(config.lr, max_grad_norm=config.max_grad_norm)
        if self.is_choice:
            self.policies, program = choosing_policies(problem)
            self.train_state = state = TrainState(problem, self.policies)
            outputs = self.policies.explore.head.inputs
            self.actor = state.network("actor", program, outputs, settings, fused=True)
        else:
            self.policies, program = deterministic_policies(problem, problem.bounded_action("BC"), None)
            self.train_state = state = TrainState(problem, self.policies)
            self.actor = deterministic_actor(state, program, settings, 0.0, 0, target=False)

    def update(self, batch: TensorBatch) -> Update:
        """One step towards the recorded actions."""
        return Update({"imitation_loss": self.actor.minimize(self.loss, batch)}, {})

    def loss(self, batch: TensorBatch) -> torch.Tensor:
        """−E[log π(a | s)] of choices, E[(π(s) − a)²] of continuous actions, which are scaled to [−1, 1]."""
        outputs = self.actor(batch.observation)
        if not self.is_choice:
            return (torch.tanh(outputs) - batch.action).square().mean()
        scores = masked(outputs, self.problem.allowed(batch.observation))
        return F.cross_entropy(scores, batch.action)
